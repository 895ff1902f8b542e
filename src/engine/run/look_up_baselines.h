// SPDX-License-Identifier: Apache-2.0
// The baselines of a run's task: from the cache, scaled to the present speed of the GPU, or else
// only eager, timed now.
//
// Contract: returns an error only if the Context ends. Every other failure becomes a note, because
// a search works without baselines.
//
// Example: CG_TRY(TaskBaselines b, look_up_baselines(parts, ctx, e, task, o));
#pragma once

#include "engine/run/loop.h"
#include "engine/run/run.h"

namespace cutegen::engine {

// Whether the run is on a GPU and uses baselines.
bool wants_baselines(const OptimizeSettings& settings);
Result<TaskBaselines> look_up_baselines(const Parts& parts, const Context& ctx,
                                        eval::EvaluatorClient& evaluator,
                                        const eval::OpenedTask& opened, RunObserver& observer);

}  // namespace cutegen::engine
