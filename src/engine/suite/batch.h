// SPDX-License-Identifier: Apache-2.0
// Runs many searches for the commands `bench` and `compare`, several at a time, with a few shared
// evaluators.
//
// Contract: each BatchItem becomes an ordinary run in the store and, when the run ends, a RunRow.
// `jobs` runs are active at the same time and share the evaluators of an EvaluatorPool. An item may
// continue an unfinished run of an earlier process, if task file, out folder and strategy are the
// same. If a task cannot be opened, its row has the error, and the batch continues. If a run fails
// because other runs use too much GPU memory, run_batch() repeats this run alone at the end. A user
// error that affects all runs (such as an unknown device) or an error of the observer ends the
// batch.
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
  std::string reason;                     // why the run stopped, or why the run found no program
  std::string run, workload;
  std::optional<double> first_ns, best_ns, floor_ns;
  std::string time_origin;
  int64_t evaluations = 0;
  double seconds = 0;
  int error_code = 0;  // exit code for the error
  ModelCost models;
  std::string math_mode;
  std::optional<TaskBaselines> baselines;  // on a GPU
  // Algebraic rewrites that changed, or could change, the best program's graph.
  std::vector<Rewrite> rewrites;
  std::string diagnosis;  // bottleneck of the best program's slowest kernel, from the profile
  std::vector<std::optional<double>> curve;  // the best time in ns after 1, 2, 3, ... evaluations
  bool modelled() const { return time_origin == to_string(Origin::modelled); }
  bool ended() const { return status != RowStatus::pending && status != RowStatus::interrupted; }
  std::optional<double> floor_ratio() const;  // best time / floor (least possible time)
  std::vector<BaselineGain> gains() const;
  // The speedup over the fastest baseline with which candidates compete (in_math_mode() in
  // core/baseline.h).
  std::optional<BaselineGain> hardest_gain() const;
};

struct BatchItem {
  OptimizeSettings settings;
  // Time limit of the run; 0: no limit. An evaluation that is running at the limit may continue up
  // to twice the limit.
  double minutes = 0;
  bool goes_on = false;  // continue an unfinished run that an earlier process began
  std::string since;     // if set: reuse finished runs, too, except runs from before this time
};

struct BatchSettings {
  int jobs = 1, evaluators = 0;  // evaluators: 0 means one per job, at most one per core
  Trace* trace = nullptr;
};
int evaluators_of(int jobs, int asked);

class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  // The threads of the jobs call on_end() and on_progress(), one thread at a time.
  virtual Result<void> on_end(size_t item, RunRow row) = 0;
  virtual void on_progress(size_t item, const std::string& line) = 0;
};

Result<void> run_batch(const Parts& parts, const Context& ctx, store::Store& store,
                       const BatchSettings& settings, const std::vector<BatchItem>& items,
                       BatchObserver& observer);

// Returns the exit code for several rows. The code is 0 if at least one row is correct. Otherwise,
// it is the code of the rows' status if all rows have the same status, else kExitFailed.
int exit_code(const std::vector<const RunRow*>& rows);

// The largest size of bench.json and compare.json, in bytes.
inline constexpr size_t kMostState = size_t{256} << 20;

}  // namespace cutegen::engine
