// SPDX-License-Identifier: Apache-2.0
// BaselineCache: stores measured baselines on disk, and the newest times of the control kernels
// (fixed kernels that show the GPU's present speed).
//
// Contract: a private folder has one file for each combination of task, GPU model, driver and
// torch. The function keep() replaces a file atomically. If a file is missing, unreadable or of
// another version, find() returns no record. If another version of the rules judged the accuracies,
// find() removes them from the record. The function controls() returns only times that are
// younger than kFresh. Several threads and processes may use the cache at once.
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

  // If `folder` is empty, uses the folder "baselines" in $CUTEGEN_CACHE, $XDG_CACHE_HOME/cutegen or
  // ~/.cache/cutegen.
  explicit BaselineCache(std::filesystem::path folder = {});
  const std::filesystem::path& folder() const { return folder_; }

  std::optional<BaselineRecord> find(const std::string& task_id, const std::string& gpu,
                                     const std::string& driver, const std::string& torch) const;
  std::optional<BaselineRecord> find(const eval::OpenedTask& opened) const;
  Result<void> keep(const BaselineRecord& record) const;
  // Returns the keys of all complete records that have times of all `wanted` baselines, and whose
  // accuracies were judged by this cutegen's rules.
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
