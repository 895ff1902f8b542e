// SPDX-License-Identifier: Apache-2.0
// The run loop: connects a strategy to proposers and the evaluator, and writes the journal.
//
// Contract: every event is committed before the next action starts. resume() folds the journal and
// continues. Stopping the Context (Ctrl-C) ends the run after the current event; the run is then
// "interrupted".
//
// Example: CG_TRY(auto outcome, optimize(ctx, store, {.file = "relu.py"}, observer));
#pragma once

#include <string>

#include "engine/record/view.h"
#include "store/store.h"

namespace cutegen::engine {

// Shows progress to a person; the run's thread calls it.
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
