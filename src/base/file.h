// SPDX-License-Identifier: Apache-2.0
// Functions for files and file descriptors: bounded reads, atomic writes, private folders.
//
// Contract: read_file() refuses folders, devices and files of more than `limit` bytes. The function
// write_file() replaces the target atomically (temporary file, fsync, rename), and private_dir()
// creates folders with mode 0700.
//
// Example: CG_TRY(std::string text, read_file("task.py", 4 << 20));
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cutegen {

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& o) noexcept;
  void reset();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

Result<std::string> read_file(const std::filesystem::path& path, size_t limit = size_t{16} << 20);
Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);
Result<void> private_dir(const std::filesystem::path& path);
// Returns the folder (…/bin) that contains the running program and cutegen's other programs.
std::filesystem::path program_dir();
// Returns the folder with the files that cutegen reads at run time (include/cutegen, python/, ...).
// The folder is $CUTEGEN_SHARE if set. Otherwise, share_dir() tries the program's folder and the
// folders above it, each also with the subfolder `share`, and returns the first folder that
// contains include/cutegen.
Result<std::filesystem::path> share_dir();
// Finds another program of this build ("cutegen-runner") in $CUTEGEN_BIN, in the folder of the
// running program, or in ../bin.
Result<std::filesystem::path> sister_program(const std::string& name);
// Creates an anonymous memory file of `bytes` bytes, which is close-on-exec and sealed against
// resizing.
Result<UniqueFd> make_memfd(const std::string& name, size_t bytes);
// After a fork, parent and child share the offset of each open file, so a seek in one process
// changes where the other process writes. Call unshare_offsets() in the child: it reopens each
// deleted regular file that is open for reading and writing, under the same descriptor. Descriptors
// that cannot be reopened stay unchanged.
void unshare_offsets();

// Maps a file descriptor into memory (MAP_SHARED), read-write or read-only.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& o) noexcept;
  Mapping& operator=(Mapping&& o) noexcept;
  static Result<Mapping> map(int fd, size_t bytes, bool writable);
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cutegen
