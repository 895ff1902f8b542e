// SPDX-License-Identifier: Apache-2.0
// The command `compare`: runs several strategies on the same tasks, with equal evaluators and equal
// budgets.
//
// Contract: a CompareCell is one run, with a task, a strategy and the number of the repetition. All
// runs have the same limits of evaluations, dollars, tokens and minutes (engine/suite/batch.h). The
// cells run in rounds: all first repetitions, then all second repetitions, and so on. The seed
// determines the order within a round, so that slow changes of the machine affect all strategies
// alike. After each cell, run_compare() saves all results in out/compare.json, compare.csv and
// curves.csv. Another call with the same settings continues the comparison.
//
// Example: CG_TRY(Comparison c, run_compare(real_parts(), ctx, store, settings, files, observer));
#pragma once

#include "engine/suite/batch.h"

namespace cutegen::engine {

// Returns the strategies that `compare` accepts: climb, which uses recipes (kernel templates), and
// cutegen, cudaforge, stark, astra, astra-single and best-of-n, which ask a language model.
std::vector<std::string> comparable_strategies();
// A strategy that asks a model may name the dialect of its programs: "cutegen:cuda".
Result<std::vector<std::string>> parse_strategies(const std::string& text);
// If there are several dialects, returns each strategy that asks a model once per dialect, and the
// other strategies unchanged.
Result<std::vector<std::string>> with_dialects(const std::vector<std::string>& strategies,
                                               const std::vector<std::string>& dialects);

struct CompareSettings {
  // The settings of every run, except file, out and strategy, which run_compare() sets.
  OptimizeSettings optimize;
  std::vector<std::string> strategies;  // in the order of the table's rows
  int repeats = 1;
  int64_t seed = 1;
  double minutes = 0;            // time limit of each cell; 0: no limit
  int jobs = 1, evaluators = 0;  // evaluators: 0 means one per job, at most one per core
  std::filesystem::path out;
  Trace* trace = nullptr;
};

struct CompareCell : RunRow {
  std::string task;  // the task's name in the table, from the file name
  std::filesystem::path file;
  std::string task_hash, strategy;
  int repeat = 1;
  std::string key() const;  // "softmax/cutegen-1"
};

struct Comparison {
  std::vector<CompareCell> cells;  // sorted by task, strategy and repetition
  std::string began;               // ISO 8601, UTC
  bool interrupted = false;
  int exit_code() const;
};

class CompareObserver {
 public:
  virtual ~CompareObserver() = default;
  // The threads of the jobs call on_cell() and on_progress(), one thread at a time.
  virtual void on_cell(const CompareCell& cell, size_t ended, size_t total) = 0;
  virtual void on_progress(const CompareCell& cell, const std::string& line) = 0;
};

Result<Comparison> run_compare(const Parts& parts, const Context& ctx, store::Store& store,
                               const CompareSettings& settings,
                               const std::vector<std::filesystem::path>& files,
                               CompareObserver& observer);

}  // namespace cutegen::engine
