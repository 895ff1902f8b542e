// SPDX-License-Identifier: Apache-2.0
// RunLock: allows one writer per run. The operating system releases the lock when the process that
// holds it ends, even after a crash.
//
// Contract: RunLock::take() never blocks. If another process holds the run's lock, take() returns
// an error that names the other process's pid. RunLock::held() tests the lock without taking it.
//
// Example: CG_TRY(RunLock lock, RunLock::take(dir, "20261121-k3v9qa"));
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"

namespace cutegen::store {

class RunLock {
 public:
  static Result<RunLock> take(const std::filesystem::path& dir, const std::string& run);
  // Returns whether any process, including this one, holds the lock of the run.
  static bool held(const std::filesystem::path& dir, const std::string& run);

 private:
  explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// A run id is a date, a dash, and six letters or digits. Check a run id before you use it, because
// it becomes a file name.
bool is_run_id(const std::string& text);
std::string new_run_id();
std::string utc_now();  // ISO 8601, seconds

}  // namespace cutegen::store
