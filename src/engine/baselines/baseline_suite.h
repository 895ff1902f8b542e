// SPDX-License-Identifier: Apache-2.0
// Measures the baselines of many tasks on one GPU in parallel and keeps them in the cache.
//
// Contract: `jobs` torch workers describe and admit the tasks on CPU cores, then open, build and
// time their baselines. They build in parallel, but time one at a time (under the GPU's lock). One
// more worker computes the float64 truth of each official shape. With it, the worker judges the
// baselines that need no build. A job starts when the GPU has enough free memory: the smallest
// build first, the largest truth first. A job that runs out of memory runs again with the GPU to
// itself. Each task becomes a row: measured, `cached` (measured earlier), or the reason why there
// are no times. A complete row is saved at once, so the same call continues after an interruption.
//
// Example: CG_TRY(auto r, measure_baselines(real_baseline_parts(s), ctx, cache, s, tasks, seen));
#pragma once

#include "engine/baselines/baseline_parts.h"
#include "engine/run/baseline_cache.h"
#include "engine/suite/suite.h"

namespace cutegen::engine {

enum class BaselineStatus {
  measured,
  cached,      // measured earlier
  error,       // the task could not be described
  unfinished,  // the time was up, or the user stopped
  pending,
};
const char* to_string(BaselineStatus status);

struct BaselineRow {
  SuiteTask task;
  BaselineStatus status = BaselineStatus::pending;
  std::string reason;
  bool has_times() const {
    return status == BaselineStatus::measured || status == BaselineStatus::cached;
  }
  BaselineRecord record;
  double describe_s = 0;  // time to describe and admit the task
};

struct BaselineReport {
  std::string gpu, uuid, driver, torch;
  std::vector<ControlTime> controls;
  std::string trouble;  // why the controls have no times; later runs cannot scale these baselines
  std::vector<BaselineRow> rows;
  double seconds = 0;
  bool interrupted = false;
  int exit_code() const;
};

class BaselineObserver {
 public:
  virtual ~BaselineObserver() = default;
  // Called by several threads, one at a time.
  virtual void on_row(const BaselineRow& row, size_t ended, size_t total) = 0;
  virtual void on_progress(const std::string& line) = 0;
};

Result<BaselineReport> measure_baselines(const BaselineParts& parts, const Context& ctx,
                                         const BaselineCache& cache,
                                         const BaselineSuiteSettings& settings,
                                         const std::vector<SuiteTask>& tasks,
                                         BaselineObserver& observer);

}  // namespace cutegen::engine
