// SPDX-License-Identifier: Apache-2.0
// A comparison: several strategies on the same tasks with one kind of evaluator and equal budget.
//
// Contract: a cell is a task, a strategy and a repeat. Each cell is a run in the store
// (engine/suite/batch.h) with the same limits of evaluations, dollars, tokens and minutes. Cells
// run in rounds (all first repeats, then all second ones). A seed draws the order within a round,
// so that slow changes of the machine affect all strategies alike. After each cell everything is
// saved in out/compare.json, compare.csv and curves.csv; a second call with the same settings
// continues.
//
// Example: CG_TRY(Comparison c, run_compare(real_parts(), ctx, store, settings, files, observer));
#pragma once

#include "engine/suite/batch.h"

namespace cutegen::engine {

// The strategies that `compare` accepts: cutegen, cudaforge, stark, astra, astra-single, best-of-n
// (with the model) and climb (recipes).
std::vector<std::string> comparable_strategies();
Result<std::vector<std::string>> parse_strategies(const std::string& text);

struct CompareSettings {
  // Settings of every run; file, out and strategy are set for each cell.
  OptimizeSettings optimize;
  std::vector<std::string> strategies;  // the strategies in the order of the table
  int repeats = 1;
  int64_t seed = 1;
  double minutes = 0;            // limit for each cell; 0: no limit
  int jobs = 1, evaluators = 0;  // evaluators 0: one per job, at most one per core
  std::filesystem::path out;
  Trace* trace = nullptr;
};

struct CompareCell : RunRow {
  std::string task;  // the task's name in the table: the file's stem
  std::filesystem::path file;
  std::string task_hash, strategy;
  int repeat = 1;
  std::string key() const;  // "softmax/cutegen-1"
};

struct Comparison {
  std::vector<CompareCell> cells;  // sorted by task, strategy, repeat
  std::string began;               // ISO 8601, UTC
  bool interrupted = false;
  int exit_code() const;
};

class CompareObserver {
 public:
  virtual ~CompareObserver() = default;
  // Called by the threads of the jobs, one at a time.
  virtual void on_cell(const CompareCell& cell, size_t ended, size_t total) = 0;
  virtual void on_progress(const CompareCell& cell, const std::string& line) = 0;
};

Result<Comparison> run_compare(const Parts& parts, const Context& ctx, store::Store& store,
                               const CompareSettings& settings,
                               const std::vector<std::filesystem::path>& files,
                               CompareObserver& observer);

}  // namespace cutegen::engine
