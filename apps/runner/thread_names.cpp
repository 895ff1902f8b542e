// SPDX-License-Identifier: Apache-2.0
// A GPU's driver writes the names of its threads to /proc/self/task/N/comm and does not start if
// that fails. In the sandbox /proc is read-only. This fopen replaces the C library's, also for
// libraries loaded later, and gives the driver a file in memory.
//
// It is part of the runner, and LD_PRELOAD loads it as a library into the torch worker's Python. It
// therefore uses only functions that every C library has.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

bool names_a_thread(const char* path) {
  constexpr char kStart[] = "/proc/self/task/", kEnd[] = "/comm";
  const size_t n = std::strlen(path), end = sizeof kEnd - 1;
  return n > end && std::strncmp(path, kStart, sizeof kStart - 1) == 0 &&
         std::strcmp(path + n - end, kEnd) == 0;
}

// The flags of open() for a mode of fopen.
int flags_of(const char* mode) {
  const bool both = std::strchr(mode, '+') != nullptr;
  int flags = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  if (mode[0] == 'w') flags |= O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags |= O_CREAT | O_APPEND;
  if (std::strchr(mode, 'x')) flags |= O_EXCL;
  if (std::strchr(mode, 'e')) flags |= O_CLOEXEC;
  return flags;
}

}  // namespace

extern "C" FILE* fopen(const char* path, const char* mode) {
  const int fd = mode[0] == 'w' && names_a_thread(path) ? ::memfd_create("name", MFD_CLOEXEC)
                                                        : ::open(path, flags_of(mode), 0666);
  if (fd < 0) return nullptr;
  FILE* file = ::fdopen(fd, mode);
  if (!file) ::close(fd);
  return file;
}

extern "C" FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}
