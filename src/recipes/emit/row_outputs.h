// SPDX-License-Identifier: Apache-2.0
// Lets a pointwise kernel also write results that lack the kernel's innermost axis, if the kernel
// reads all operands of these results anyway.
//
// Contract: join_row_outputs() moves the outputs of a pointwise stage into another pointwise stage
// that has the same axes plus an innermost axis, and removes the first stage. The sizes of the
// common axes must agree at every shape of the task. The elementwise recipe then stores the moved
// outputs once for each row.
//
// Example: out[r, c] = x[r, c] * exp(s[r]), scale[r] = exp(s[r])  // one kernel instead of two
#pragma once

#include "core/task.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

void join_row_outputs(const Task& task, Stages& stages);

}  // namespace cutegen::recipes
