// SPDX-License-Identifier: Apache-2.0
// The baselines of many tasks on one GPU, measured side by side and kept in the cache.
//
// Contract: `jobs` torch workers describe and admit the tasks on CPU cores, then open, build and
// time their baselines; builds go on side by side, what is timed is timed alone (the GPU's slot).
// One more worker makes the float64 truth of each official shape, and judges on it the baselines
// that need no build. Work starts when its memory is
// free: small tasks first, truths from the largest on; what runs out of memory is tried once more
// with the GPU to itself. A task is a row: measured, known before (`cached`), or with the reason
// why not; it is kept as soon as it is whole, so that the same call goes on after an interruption.
//
// Example: CG_TRY(auto r, measure_baselines(real_baseline_parts(s), ctx, cache, s, tasks, seen));
#pragma once

#include "engine/run/baseline_cache.h"
#include "engine/suite/suite.h"
#include "eval/judge/baselines.h"
#include "gpu/spec.h"

namespace cutegen::engine {

struct BaselineSuiteSettings {
  DeviceName device = "cuda:0";
  std::string python;
  bool require_sandbox = false;
  AskedAccuracy asked = {};  // of every task
  std::vector<torch::BaselineWanted> baselines;
  int jobs = 1;
  eval::BaselineLimits limits;
  double minutes = 0;  // 0: no limit
  bool again = false;  // measure what is known, too
};

struct BaselineGpu {
  GpuSpec spec;
  std::string uuid, driver;
  int64_t memory_bytes = 0;
  int cuda_version = 0;  // that the driver takes
};

// The outside world, so that tests put toys in its place.
struct BaselineParts {
  std::function<Result<BaselineGpu>(const Context&)> gpu;
  std::function<Result<std::unique_ptr<torch::TorchWorker>>(const BaselineGpu&)> worker;
  std::function<Result<std::vector<ControlTime>>(const Context&)> controls;
  // Called by one thread.
  std::function<Result<TruthMade>(const Context&, const BaselineGpu&, const Task&)> truth;
};
BaselineParts real_baseline_parts(const BaselineSuiteSettings& settings);

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
  double describe_s = 0;  // described and admitted
};

struct BaselineReport {
  std::string gpu, uuid, driver, torch;
  std::vector<ControlTime> controls;
  std::string trouble;  // with the controls: nothing can be carried over to another day
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
