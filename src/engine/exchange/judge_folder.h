// SPDX-License-Identifier: Apache-2.0
// Judges all programs in a folder, so that one machine can propose programs and another measure
// them.
//
// Contract: an entry is a folder with plan.json and its sources, or with a third-party solution
// (eval/judge/foreign.h). Its task is its task.py, or the one task given for all. OUT/NAME.json
// (schema cutegen.entry.v1) gets the verdict as soon as it is known, as a whole file or not at all.
// An entry that already has a verdict for the same program, task, device model and last rung is
// kept. Devices of several models are an error. A broken entry gets its error; the others are
// judged. Evaluators work in parallel, each on the entries of one task after the other, so that
// tasks are opened rarely.
//
// Example: CG_TRY(auto rows, judge_folder(real_parts(), ctx, {"in", "out", {}, {options}}, seen));
#pragma once

#include "engine/run/loop.h"
#include "engine/suite/row_status.h"

namespace cutegen::engine {

struct JudgeFolderSettings {
  std::filesystem::path in, out;
  std::filesystem::path task;                      // of entries that have none of their own
  std::vector<eval::EvaluatorOptions> evaluators;  // one process each, side by side
  Rung up_to = Rung::timing;
  bool again = false;  // judge what has a verdict, too
  double seconds =
      eval::ForeignRequest().seconds;  // of a third-party solution: its import, builds included
  AskedAccuracy asked = {};            // of every task
};

struct FolderRow {
  std::string name;
  RowStatus status = RowStatus::pending;  // error: the entry has no verdict
  std::string detail;                     // the verdict's headline, or the error
  std::optional<double> time_ns;
  bool kept = false;     // the verdict was there already
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

// Returns the rows by name; those that the context cut off are `pending`. Fails if the folder
// cannot be read or no evaluator starts.
Result<std::vector<FolderRow>> judge_folder(const Parts& parts, const Context& ctx,
                                            const JudgeFolderSettings& settings,
                                            FolderObserver& observer);

}  // namespace cutegen::engine
