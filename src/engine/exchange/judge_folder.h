// SPDX-License-Identifier: Apache-2.0
// The verdicts of all programs in a folder, so that proposing and measuring can live on different
// machines: one writes programs, another judges them and writes verdicts beside each other.
//
// Contract: an entry is a folder with plan.json and its sources, or with a peer's answer (a Python
// file with ModelNew, eval/judge/foreign.h); its task is task.py in it, or the one task given for
// all. Its verdict goes to OUT/NAME.json (schema cutegen.entry.v1) as soon as it is known, whole or
// not at all. An entry that has a verdict for the same program, task, model of device and last rung
// is kept; devices of several models are refused. What is broken gets its error there, and the
// others go on. Evaluators work side by side, each on the entries of one task after the other, so
// that tasks are opened seldom.
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
      eval::ForeignRequest().seconds;  // of a peer's answer: its import, with all it builds
  AskedAccuracy asked = {};            // of every task
};

struct FolderRow {
  std::string name;
  RowStatus status = RowStatus::pending;  // error: the entry has no verdict
  std::string detail;                     // the verdict's headline, or the error
  std::optional<double> time_ns;
  bool kept = false;     // the verdict was there already
  bool foreign = false;  // a peer's answer
  int code = 0;          // exit code of the error
  double seconds = 0;
};

class FolderObserver {
 public:
  virtual ~FolderObserver() = default;
  // Called by the threads of the evaluators, one at a time.
  virtual void on_row(const FolderRow& row, size_t ended, size_t total) = 0;
};

// The rows by name; `pending` ones where the context ended. An error: the folder cannot be read, or
// no evaluator starts.
Result<std::vector<FolderRow>> judge_folder(const Parts& parts, const Context& ctx,
                                            const JudgeFolderSettings& settings,
                                            FolderObserver& observer);

}  // namespace cutegen::engine
