// SPDX-License-Identifier: Apache-2.0
// BaselineCache: keeps measured baselines for searches, and the last times of the control kernels.
//
// Contract: one file for each (task, GPU model, driver, torch) in a private folder, replaced as a
// whole. A file that is missing, unreadable or of another version counts as no record. Control
// timings are reused for kFresh. Several threads and processes may use it at once.
//
// Example: BaselineCache cache; if (auto record = cache.find(opened)) use(record->times);
#pragma once

#include <filesystem>
#include <optional>

#include "core/baseline.h"
#include "eval/api/client.h"

namespace cutegen::engine {

class BaselineCache {
 public:
  static constexpr auto kFresh = std::chrono::minutes(15);

  // folder: if empty, the folder "baselines" in $CUTEGEN_CACHE, $XDG_CACHE_HOME/cutegen or
  // ~/.cache/cutegen.
  explicit BaselineCache(std::filesystem::path folder = {});
  const std::filesystem::path& folder() const { return folder_; }

  std::optional<BaselineRecord> find(const std::string& task_id, const std::string& gpu,
                                     const std::string& driver, const std::string& torch) const;
  std::optional<BaselineRecord> find(const eval::OpenedTask& opened) const;
  Result<void> keep(const BaselineRecord& record) const;
  // The keys of the records that are not cut and have all `wanted` baselines.
  std::vector<eval::KnownBaselines> with_times_of(
      const std::vector<torch::BaselineWanted>& wanted) const;

  std::optional<std::vector<ControlTime>> controls(const std::string& gpu,
                                                   const std::string& driver) const;
  Result<void> keep_controls(const std::string& gpu, const std::string& driver,
                             const std::vector<ControlTime>& controls) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace cutegen::engine
