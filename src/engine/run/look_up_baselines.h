// SPDX-License-Identifier: Apache-2.0
// The baselines of a run's task: kept ones carried over to now, else eager, timed once.
//
// Contract: an error only where the Context ends; all other trouble is a note, since a search does
// not need baselines. Example: CG_TRY(TaskBaselines b, look_up_baselines(parts, ctx, e, task, o));
#pragma once

#include "engine/run/loop.h"
#include "engine/run/run.h"

namespace cutegen::engine {

// A run on a GPU that was not told to leave them out.
bool wants_baselines(const OptimizeSettings& settings);
Result<TaskBaselines> look_up_baselines(const Parts& parts, const Context& ctx,
                                        eval::EvaluatorClient& evaluator,
                                        const eval::OpenedTask& opened, RunObserver& observer);

}  // namespace cutegen::engine
