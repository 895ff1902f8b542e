// SPDX-License-Identifier: Apache-2.0
// The run loop: executes the actions of a strategy with a proposer and the evaluator, and writes
// the journal.
//
// Contract: the loop commits every event before it starts the next action. The function
// resume_run() restores the state of a run from the journal and continues the run, unless its
// verdicts have another policy version. If the Context is stopped (Ctrl-C), the run ends after the
// current event, with the state "interrupted".
//
// Example: CG_TRY(auto outcome, optimize(ctx, store, {.file = "relu.py"}, observer));
#pragma once

#include <string>

#include "engine/record/view.h"
#include "store/store.h"

namespace cutegen::engine {

// Shows the progress of a run to a person. The run's thread calls on_event() and on_progress().
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_event(const Event& event) = 0;
  virtual void on_progress(const std::string& line) = 0;
};

Result<RunResult> optimize(const Context& ctx, store::Store& store,
                           const OptimizeSettings& settings, RunObserver& observer);
Result<RunResult> resume_run(const Context& ctx, store::Store& store, const std::string& run,
                             RunObserver& observer);

}  // namespace cutegen::engine
