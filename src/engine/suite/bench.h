// SPDX-License-Identifier: Apache-2.0
// A bench: `optimize` over the tasks of a suite, one row for each task.
//
// Contract: each task is a run in the store like any other; engine/suite/batch.h runs them. After
// each task it saves the rows in out/bench.json, bench.csv, summary.csv and bench.html. With
// `resume` it keeps rows that have ended (unless the task's file has changed) and continues
// interrupted runs. A task that cannot be opened becomes a row and does not end the bench.
//
// Example: CG_TRY(BenchReport r, run_bench(real_parts(), ctx, store, settings, tasks, observer));
#pragma once

#include "engine/suite/batch.h"
#include "engine/suite/suite.h"

namespace cutegen::engine {

struct BenchSettings {
  OptimizeSettings optimize;  // settings of every run; file and out are set for each task
  // 0: no limit. A running evaluation may exceed the limit; at twice the limit, bench interrupts
  // it.
  double per_task_minutes = 0;
  int jobs = 1, evaluators = 0;  // evaluators 0: one per job, at most one per core
  std::filesystem::path out;     // programs/TASK, bench.json, bench.csv
  bool resume = false;
  Trace* trace = nullptr;
};

struct BenchRow : RunRow {
  SuiteTask task;
  std::string task_hash;
};

struct BenchReport {
  std::vector<BenchRow> rows;
  bool interrupted = false;
  int exit_code() const;
};

class BenchObserver {
 public:
  virtual ~BenchObserver() = default;
  // Called by the threads of the jobs, one at a time.
  virtual void on_row(const BenchRow& row, size_t ended, size_t total) = 0;
  virtual void on_progress(const SuiteTask& task, const std::string& line) = 0;
};

Result<BenchReport> run_bench(const Parts& parts, const Context& ctx, store::Store& store,
                              const BenchSettings& settings, const std::vector<SuiteTask>& tasks,
                              BenchObserver& observer);

}  // namespace cutegen::engine
