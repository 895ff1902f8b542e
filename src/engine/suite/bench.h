// SPDX-License-Identifier: Apache-2.0
// The command `bench`: optimizes each task of a suite and makes a table with one row for each task.
//
// Contract: each task is an ordinary run in the store (engine/suite/batch.h). After each task,
// run_bench() saves all rows in out/bench.json, bench.csv, summary.csv and bench.html. With
// `resume`, it keeps the rows of finished runs (unless the task's file has changed) and continues
// interrupted runs. If a task cannot be opened, its row has the error, and the bench continues.
//
// Example: CG_TRY(BenchReport r, run_bench(real_parts(), ctx, store, settings, tasks, observer));
#pragma once

#include "engine/suite/batch.h"
#include "engine/suite/suite.h"

namespace cutegen::engine {

struct BenchSettings {
  OptimizeSettings optimize;  // settings of every run; run_bench() sets file and out
  // Time limit of each run; 0: no limit. An evaluation that is running at the limit may continue up
  // to twice the limit.
  double per_task_minutes = 0;
  int jobs = 1, evaluators = 0;  // evaluators: 0 means one per job, at most one per core
  std::filesystem::path out;     // folder for programs/TASK, bench.json, bench.csv, ...
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
  // The threads of the jobs call on_row() and on_progress(), one thread at a time.
  virtual void on_row(const BenchRow& row, size_t ended, size_t total) = 0;
  virtual void on_progress(const SuiteTask& task, const std::string& line) = 0;
};

Result<BenchReport> run_bench(const Parts& parts, const Context& ctx, store::Store& store,
                              const BenchSettings& settings, const std::vector<SuiteTask>& tasks,
                              BenchObserver& observer);

}  // namespace cutegen::engine
