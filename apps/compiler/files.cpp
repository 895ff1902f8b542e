// SPDX-License-Identifier: Apache-2.0
#include "compiler/files.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

namespace cutegen::compiler {
namespace {

constexpr size_t kMostRefused = 8;

bool is_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

std::optional<size_t> part_of(const std::string& name) {
  const std::string first = kCandidateFile;
  if (name == first) return 0;
  if (!name.starts_with(first + ".")) return std::nullopt;
  return std::strtoul(name.c_str() + first.size() + 1, nullptr, 10);
}

}  // namespace

std::string part_file(size_t part) {
  return part == 0 ? kCandidateFile : kCandidateFile + ("." + std::to_string(part));
}

void Files::begin(Rules rules) {
  rules_ = std::move(rules);
  opened_.clear();
  refused_.clear();
  active_ = true;
}

std::vector<std::string> Files::take_opened() {
  return std::exchange(opened_, {});
}
std::vector<std::string> Files::take_refused() {
  return std::exchange(refused_, {});
}

FILE* Files::open(const char* path, const char* mode) {
  char resolved[PATH_MAX];
  bool exists = ::realpath(path, resolved) != nullptr;
  if (!exists) {
    // A precompiled header that NVRTC is about to write, or a missing header.
    if (is_below(path, rules_.work_dir)) return real_fopen(path, mode);
    errno = ENOENT;
    return nullptr;
  }
  std::string real = resolved;
  if (is_below(real, rules_.work_dir)) {
    auto part =
        rules_.open_candidate ? part_of(real.substr(rules_.work_dir.size() + 1)) : std::nullopt;
    return part ? rules_.open_candidate(*part) : real_fopen(path, mode);
  }
  for (const std::string& dir : rules_.include_dirs)
    if (is_below(real, dir) && mode[0] == 'r') {
      opened_.push_back(real);
      return real_fopen(path, mode);
    }
  if (refused_.size() < kMostRefused) refused_.emplace_back(path);
  errno = ENOENT;
  return nullptr;
}

Files& files() {
  static Files only;
  return only;
}

FILE* real_fopen(const char* path, const char* mode) {
  using Function = FILE* (*)(const char*, const char*);
  static Function real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "fopen"));
  return real(path, mode);
}

FILE* open_text(const std::string& text) {
  int fd = ::memfd_create("candidate", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = ::pwrite(fd, text.data() + done, text.size() - done, off_t(done));
    if (n <= 0) break;
    done += size_t(n);
  }
  FILE* file = done == text.size() ? ::fdopen(fd, "r") : nullptr;
  if (!file) ::close(fd);
  return file;
}

}  // namespace cutegen::compiler

extern "C" FILE* fopen(const char* path, const char* mode) {
  auto& files = cutegen::compiler::files();
  return files.active() ? files.open(path, mode) : cutegen::compiler::real_fopen(path, mode);
}

// NVRTC takes __DATE__ and __TIME__ from this text. The lint misses these names if a program pastes
// them together, so this text makes both fail to compile; the error names _NOW.
extern "C" char* ctime(const time_t*) {
  static char text[] = "Thu \"+_NOW+\"+_NOW+\" \"   \n";
  return text;
}

extern "C" FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}
