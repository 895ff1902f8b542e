// SPDX-License-Identifier: Apache-2.0
// Lets an evaluator time PyTorch on many tasks on one GPU, and stores the times in the cache.
//
// Contract: for several tasks in parallel, the evaluator checks that degenerate solutions fail,
// computes the float64 results, and times the baselines (eval/baselines/suite.h). Each task becomes
// a row. Its status is `measured`, `cached` (an earlier call measured it), or another one if it has
// no times, and `reason` then says why. measure_baselines() stores each complete row at once, so
// the same call continues after an interruption.
//
// Example: CG_TRY(auto r, measure_baselines(EvaluatorClient::start, ctx, cache, s, tasks, seen));
#pragma once

#include "engine/run/baseline_cache.h"
#include "engine/suite/suite.h"

namespace cutegen::engine {

using eval::BaselineStatus;

struct BaselineSuiteSettings {
  DeviceName device = "cuda:0";
  std::string python;
  bool require_sandbox = false;
  AskedAccuracy asked = {};  // for every task
  std::vector<torch::BaselineWanted> baselines;
  int jobs = 1;
  eval::BaselineLimits limits;
  double minutes = 0;  // 0: no limit
  bool again = false;  // also measure tasks whose times the cache has
};

struct BaselineRow {
  SuiteTask task;
  BaselineStatus status = BaselineStatus::pending;
  std::string reason;
  bool has_times() const {
    return status == BaselineStatus::measured || status == BaselineStatus::cached;
  }
  BaselineRecord record;
  double describe_s = 0;  // seconds for describing and admitting the task
};

struct BaselineReport {
  std::string gpu, uuid, driver, torch;
  std::vector<ControlTime> controls;
  // Why the control kernels have no times. Without them, later runs cannot scale these baselines.
  std::string trouble;
  std::vector<BaselineRow> rows;
  double seconds = 0;
  bool interrupted = false;
  int exit_code() const;
};

class BaselineObserver {
 public:
  virtual ~BaselineObserver() = default;
  // Several threads call these functions, one at a time.
  virtual void on_row(const BaselineRow& row, size_t ended, size_t total) = 0;
  virtual void on_progress(const std::string& line) = 0;
};

using StartEvaluator = std::function<Result<std::unique_ptr<eval::EvaluatorClient>>(
    const Context&, const eval::EvaluatorOptions&)>;

Result<BaselineReport> measure_baselines(const StartEvaluator& start, const Context& ctx,
                                         const BaselineCache& cache,
                                         const BaselineSuiteSettings& settings,
                                         const std::vector<SuiteTask>& tasks,
                                         BaselineObserver& observer);

}  // namespace cutegen::engine
