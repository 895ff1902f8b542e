// SPDX-License-Identifier: Apache-2.0
// RunLock: one writer a run. The kernel drops the lock when the process dies, however it dies.
//
// Contract: take() never blocks; when another process holds the lock, the error names its pid.
// holder() only asks. Example: CG_TRY(RunLock lock, RunLock::take(dir, "20261121-k3v9qa"));
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"

namespace cutegen {

class RunLock {
 public:
  [[nodiscard]] static Result<RunLock> take(const std::filesystem::path& dir,
                                            const std::string& run);
  // Whether some open lock exists for the run (this process's own included).
  [[nodiscard]] static bool held(const std::filesystem::path& dir, const std::string& run);

 private:
  explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Run ids name lock files: date, a dash and six letters or digits.
[[nodiscard]] bool is_run_id(const std::string& text);
[[nodiscard]] std::string new_run_id();
[[nodiscard]] std::string utc_now();  // ISO 8601, seconds

}  // namespace cutegen
