// SPDX-License-Identifier: Apache-2.0
// The control kernels (tasks/control): cutegen's own programs whose times show how fast a GPU is
// now.
//
// Contract: one control is bound by memory, one by arithmetic. The evaluator judges and times them
// like any program and closes their tasks afterwards. If the evaluator already has a task open, it
// must be able to keep two open. An incorrect control is an error of the environment.
//
// Example: CG_TRY(auto controls, time_controls(ctx, *evaluator));
#pragma once

#include "core/baseline.h"
#include "eval/api/client.h"

namespace cutegen::eval {

Result<std::vector<ControlTime>> time_controls(const Context& ctx, EvaluatorClient& evaluator);

}  // namespace cutegen::eval
