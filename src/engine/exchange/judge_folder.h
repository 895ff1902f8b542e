// SPDX-License-Identifier: Apache-2.0
// Judges all programs in a folder, so that one machine can propose programs and another measure
// them.
//
// Contract: an entry is a folder with plan.json and its sources, or with a third-party solution
// (eval/judge/foreign.h). Its task is its own task.py, or the one task given for all. OUT/NAME.json
// (schema cutegen.entry.v1) is written atomically as soon as the verdict is known. An existing
// verdict is kept if program, task, device model and last rung are the same. Naming devices of
// different models is an error. If an entry is broken, its result is the error, and the others are
// judged. Evaluators work in parallel. Each judges all entries of one task before it takes the next
// task, because opening a task is slow.
//
// Example: CG_TRY(auto rows, judge_folder(real_parts(), ctx, {"in", "out", {}, {options}}, seen));
#pragma once

#include "engine/run/loop.h"
#include "engine/suite/row_status.h"

namespace cutegen::engine {

struct JudgeFolderSettings {
  std::filesystem::path in, out;
  std::filesystem::path task;  // the task of entries without a task.py
  // Options of the evaluators, which run in parallel.
  std::vector<eval::EvaluatorOptions> evaluators;
  Rung up_to = Rung::timing;
  bool again = false;  // also judge entries that have a verdict
  // Limit for importing a third-party solution, including its builds.
  double seconds = eval::ForeignRequest().seconds;
  AskedAccuracy asked = {};  // for every task
};

struct FolderRow {
  std::string name;
  RowStatus status = RowStatus::pending;  // error: the entry has no verdict
  std::string detail;                     // the verdict's headline, or the error
  std::optional<double> time_ns;
  bool kept = false;     // an earlier call wrote the verdict
  bool foreign = false;  // a third-party solution
  int code = 0;          // exit code of the error
  double seconds = 0;
};

class FolderObserver {
 public:
  virtual ~FolderObserver() = default;
  // Called by the threads of the evaluators, one at a time.
  virtual void on_row(const FolderRow& row, size_t ended, size_t total) = 0;
};

// Returns the rows sorted by name; `pending` ones were not judged before the context ended. Fails
// if the folder cannot be read or no evaluator starts.
Result<std::vector<FolderRow>> judge_folder(const Parts& parts, const Context& ctx,
                                            const JudgeFolderSettings& settings,
                                            FolderObserver& observer);

}  // namespace cutegen::engine
