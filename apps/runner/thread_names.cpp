// SPDX-License-Identifier: Apache-2.0
// Threads of a GPU's driver write their names to /proc/self/task/N/comm, and the driver does not
// start where that fails; in the sandbox /proc is read-only. The program's own fopen stands before
// the C library's (for libraries that are loaded later, too) and gives them a file in memory.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace {

bool names_a_thread(std::string_view path) {
  return path.starts_with("/proc/self/task/") && path.ends_with("/comm");
}

}  // namespace

extern "C" FILE* fopen(const char* path, const char* mode) {
  using Function = FILE* (*)(const char*, const char*);
  static Function real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "fopen"));
  if (!path || !mode || mode[0] != 'w' || !names_a_thread(path)) return real(path, mode);
  int fd = ::memfd_create("name", MFD_CLOEXEC);
  FILE* file = fd < 0 ? nullptr : ::fdopen(fd, mode);
  if (!file && fd >= 0) ::close(fd);
  return file;
}

extern "C" FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}
