// SPDX-License-Identifier: Apache-2.0
// Judges all programs in a folder, so that one machine can propose programs and another machine can
// measure them.
//
// Contract: each folder NAME in `settings.in` is an entry. It contains plan.json with its sources,
// or a third-party solution (eval/judge/foreign.h). The task of an entry is the file task.py in its
// folder or, without this file, `settings.task`. As soon as the verdict on an entry is known,
// judge_folder() writes it atomically to NAME.json (schema cutegen.entry.v1) in `settings.out`. It
// keeps an existing verdict if program, task, device model and last requested check (`up_to`) are
// the same. All devices must be of the same model. If an entry is unreadable, its row has the
// error, and judge_folder() judges the other entries. The evaluators work in parallel. Each
// evaluator judges all entries of one task before it opens the next task, because opening a task is
// slow.
//
// Example: CG_TRY(auto rows, judge_folder(real_parts(), ctx, {"in", "out", {}, {options}}, seen));
#pragma once

#include "engine/run/loop.h"
#include "engine/suite/row_status.h"

namespace cutegen::engine {

struct JudgeFolderSettings {
  std::filesystem::path in, out;
  std::filesystem::path task;  // the task file for entries without a task.py
  // The options of each evaluator; the evaluators run in parallel.
  std::vector<eval::EvaluatorOptions> evaluators;
  Rung up_to = Rung::timing;
  bool again = false;  // also judge an entry that already has a verdict
  // Time limit in seconds for importing a third-party solution in Python, including its builds.
  double seconds = eval::ForeignRequest().seconds;
  AskedAccuracy asked = {};  // for every task
};

struct FolderRow {
  std::string name;
  RowStatus status = RowStatus::pending;  // error: the entry has no verdict
  std::string detail;                     // the verdict's headline, or the error
  std::optional<double> time_ns;
  bool kept = false;     // whether an earlier call wrote the verdict
  bool foreign = false;  // whether the entry is a third-party solution
  int code = 0;          // exit code of the error, if the entry has one
  double seconds = 0;
};

class FolderObserver {
 public:
  virtual ~FolderObserver() = default;
  // The evaluators' threads call on_row(), one thread at a time.
  virtual void on_row(const FolderRow& row, size_t ended, size_t total) = 0;
};

// Returns the rows sorted by name. A row is `pending` if the context ended before its entry was
// judged. Returns an error if the folder cannot be read or no evaluator starts.
Result<std::vector<FolderRow>> judge_folder(const Parts& parts, const Context& ctx,
                                            const JudgeFolderSettings& settings,
                                            FolderObserver& observer);

}  // namespace cutegen::engine
