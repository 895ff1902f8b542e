// SPDX-License-Identifier: Apache-2.0
// Lets an evaluator time PyTorch on many tasks on one GPU, and stores the times in the cache.
//
// Contract: for several tasks in parallel, the evaluator checks that degenerate solutions (zeros, a
// copy of the input, ...) fail, computes the float64 results, and times the baselines
// (eval/baselines/suite.h). The report has a row for each task. A row with times has the status
// `measured`, or `cached` if an earlier call measured the times. A row without times has another
// status, and `reason` says why. Because measure_baselines() stores each complete row at once, the
// same call continues after an interruption.
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
  bool again = false;  // true: also measure tasks whose times are in the cache
};

struct BaselineRow {
  SuiteTask task;
  BaselineStatus status = BaselineStatus::pending;
  std::string reason;
  bool has_times() const {
    return status == BaselineStatus::measured || status == BaselineStatus::cached;
  }
  BaselineRecord record;
  double describe_s = 0;  // seconds to describe the task and to test degenerate solutions
};

struct BaselineReport {
  std::string gpu, uuid, driver, torch;
  std::vector<ControlTime> controls;
  // Why the control kernels (fixed kernels that show the GPU's speed) have no times, or empty.
  // Without their times, later runs cannot scale the baselines.
  std::string trouble;
  std::vector<BaselineRow> rows;
  double seconds = 0;
  bool interrupted = false;
  int exit_code() const;
};

class BaselineObserver {
 public:
  virtual ~BaselineObserver() = default;
  // Several threads call on_row() and on_progress(), one thread at a time.
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
