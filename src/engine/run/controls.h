// SPDX-License-Identifier: Apache-2.0
// The control kernels (tasks/control): programs of our own whose times say how fast a GPU is now.
//
// Contract: one bound by memory, one by arithmetic, judged and timed by the evaluator like any
// program; each task is closed again. An evaluator that has another task open must be able to hold
// two. One that is not correct here is a world error.
//
// Example: CG_TRY(auto controls, time_controls(ctx, *evaluator));
#pragma once

#include "core/baseline.h"
#include "eval/api/client.h"

namespace cutegen::engine {

Result<std::vector<ControlTime>> time_controls(const Context& ctx,
                                               eval::EvaluatorClient& evaluator);

}  // namespace cutegen::engine
