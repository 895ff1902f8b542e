// SPDX-License-Identifier: Apache-2.0
// Times the control kernels (tasks/control): fixed programs of cutegen whose times show how fast a
// GPU runs at present.
//
// Contract: memory limits one control kernel, and arithmetic limits the other. The evaluator judges
// and times both kernels like any program. At the end, time_controls() closes their tasks. If
// another task is open, EvaluatorOptions::tasks must be at least 2. If a control kernel is
// incorrect, the result is a world error (a fault of the environment).
//
// Example: CG_TRY(auto controls, time_controls(ctx, *evaluator));
#pragma once

#include "core/baseline.h"
#include "eval/api/client.h"

namespace cutegen::eval {

Result<std::vector<ControlTime>> time_controls(const Context& ctx, EvaluatorClient& evaluator);

}  // namespace cutegen::eval
