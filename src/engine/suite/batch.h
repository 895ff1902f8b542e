// SPDX-License-Identifier: Apache-2.0
// A batch: many runs of one store, several at a time, over a few shared evaluators.
//
// Contract: each item is an ordinary run; when it ends, it becomes a row. `jobs` runs are active in
// parallel and share the evaluators of engine/suite/evaluator_pool.h. An item may continue a run
// that an earlier session left unfinished, if task file, out folder and strategy are the same. A
// task that cannot be opened becomes a row and does not end the batch. Items that ran out of GPU
// memory beside others run again at the end, one at a time. A user error of the evaluator itself
// (an unknown device) or an error of the observer ends the batch.
//
// Example: CG_CHECK(run_batch(real_parts(), ctx, store, {.jobs = 4}, items, observer));
#pragma once

#include "engine/run/loop.h"
#include "engine/suite/row_status.h"
#include "engine/suite/trace.h"

namespace cutegen::engine {

// The result of a run.
struct RunRow {
  RowStatus status = RowStatus::pending;  // error: the task could not be opened
  std::string reason;                     // why it stopped, or why nothing was found
  std::string run, workload;
  std::optional<double> first_ns, best_ns, floor_ns;
  std::string time_origin;
  int64_t evaluations = 0;
  double seconds = 0;
  int error_code = 0;  // exit code of the error
  ModelCost models;
  std::string math_mode;
  std::optional<TaskBaselines> baselines;  // on a GPU
  // Rewrites of the best program's graph, applied or possible.
  std::vector<Rewrite> rewrites;
  std::string diagnosis;  // diagnosis of the best program's slowest kernel, if there is a profile
  std::vector<std::optional<double>> curve;  // the best time after 1, 2, ... evaluations
  bool modelled() const { return time_origin == to_string(Origin::modelled); }
  bool ended() const { return status != RowStatus::pending && status != RowStatus::interrupted; }
  std::optional<double> floor_ratio() const;  // best time / floor
  std::vector<BaselineGain> gains() const;
  // The speedup over the fastest baseline in the task's math mode.
  std::optional<BaselineGain> hardest_gain() const;
};

struct BatchItem {
  OptimizeSettings settings;
  // 0: no limit. A running evaluation may exceed the limit; at twice the limit, the batch
  // interrupts it.
  double minutes = 0;
  bool goes_on = false;  // continue an unfinished run of an earlier session
  std::string since;     // if not empty, also reuse finished runs that began at this time or later
};

struct BatchSettings {
  int jobs = 1, evaluators = 0;  // evaluators 0: one per job, at most one per core
  Trace* trace = nullptr;
};
int evaluators_of(int jobs, int asked);

class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  // Called by the threads of the jobs, one at a time.
  virtual Result<void> on_end(size_t item, RunRow row) = 0;
  virtual void on_progress(size_t item, const std::string& line) = 0;
};

Result<void> run_batch(const Parts& parts, const Context& ctx, store::Store& store,
                       const BatchSettings& settings, const std::vector<BatchItem>& items,
                       BatchObserver& observer);

// The exit code of several rows: 0 if a row is correct, else the code of the status that all rows
// share, else kExitFailed.
int exit_code(const std::vector<const RunRow*>& rows);

inline constexpr size_t kMostState = size_t{256} << 20;  // most bytes of bench.json or compare.json

}  // namespace cutegen::engine
