// SPDX-License-Identifier: Apache-2.0
// Files and descriptors: bounded reads, atomic writes, private folders.
//
// Contract: read_file refuses folders, devices and files of more than `limit` bytes. write_file
// replaces the target atomically (temporary file, fsync, rename). private_dir creates folders with
// mode 0700.
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
// The folder of the running program (…/bin), which also has cutegen's other programs.
std::filesystem::path program_dir();
// The folder with the files that cutegen reads at run time (include/cutegen, python/, ...):
// $CUTEGEN_SHARE, else the nearest folder above the program that has them.
Result<std::filesystem::path> share_dir();
// Path of another program of this build ("cutegen-runner"): in $CUTEGEN_BIN, beside this one, or in
// ../bin.
Result<std::filesystem::path> sister_program(const std::string& name);
// An anonymous memory file of `bytes` bytes, close-on-exec, sealed against resizing.
Result<UniqueFd> make_memfd(const std::string& name, size_t bytes);
// Call it after a fork: reopens every deleted file that the process inherited for writing, under
// the same descriptor. Otherwise parent and children share one file offset, and a seek in one of
// them moves the writes of the other. Descriptors that cannot be reopened stay unchanged.
void unshare_offsets();

// A shared mapping of a descriptor, read-write or read-only.
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
