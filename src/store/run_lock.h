// SPDX-License-Identifier: Apache-2.0
// RunLock: allows one writer per run. The kernel releases the lock whenever the process ends, even
// by a crash.
//
// Contract: take() never blocks; if another process holds the lock, the error names its pid. held()
// only probes. Example: CG_TRY(RunLock lock, RunLock::take(dir, "20261121-k3v9qa"));
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"

namespace cutegen::store {

class RunLock {
 public:
  static Result<RunLock> take(const std::filesystem::path& dir, const std::string& run);
  // Whether any process (also this one) holds the run's lock.
  static bool held(const std::filesystem::path& dir, const std::string& run);

 private:
  explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// A run id is a date, a dash, and six letters or digits. It names the lock file, so check it first.
bool is_run_id(const std::string& text);
std::string new_run_id();
std::string utc_now();  // ISO 8601, seconds

}  // namespace cutegen::store
