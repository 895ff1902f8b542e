// SPDX-License-Identifier: Apache-2.0
// Finds the baseline times of a run's task in the cache and scales them to the present speed of the
// GPU. If the cache has no usable times, the evaluator times PyTorch's eager mode.
//
// Contract: look_up_baselines() returns an error only if the Context was cancelled or timed out.
// Any other failure only sets `note` in the result, because a search works without baselines.
//
// Example: CG_TRY(TaskBaselines b, look_up_baselines(parts, ctx, e, task, o));
#pragma once

#include "engine/run/loop.h"
#include "engine/run/run.h"

namespace cutegen::engine {

// Returns whether the run is on a GPU and uses baselines.
bool wants_baselines(const OptimizeSettings& settings);
Result<TaskBaselines> look_up_baselines(const Parts& parts, const Context& ctx,
                                        eval::EvaluatorClient& evaluator,
                                        const eval::OpenedTask& opened, RunObserver& observer);

}  // namespace cutegen::engine
