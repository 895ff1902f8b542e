// SPDX-License-Identifier: Apache-2.0
// Rough estimates of the time of a convolution by rows (window_rows.h) and by patches of the input
// (window_implicit.h), to choose between their layouts.
//
// Contract: both functions return seconds on an H200 at the shape in the task file. They are fitted
// to times of about thirty convolutions, and are no bounds. `params` has the parameters that
// rows_layout() reads.
//
// Example: if (rows_seconds(fused, params) < implicit_seconds(fused)) ...
#pragma once

#include "base/json.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {

double rows_seconds(const Fused& fused, const Json& params);
double implicit_seconds(const Fused& fused);

}  // namespace cutegen::recipes
