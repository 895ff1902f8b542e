// SPDX-License-Identifier: Apache-2.0
// Convolutions as products whose rows are positions (cutegen/conv_rows.cuh), as part of the windows
// recipe.
//
// Contract: rows_apply() returns whether the kernel supports the stage: an ordinary convolution
// with one group, in float16, bfloat16 or tf32, without reductions over the channels. If the input
// is not channels-last, or its elements are floats, an additional kernel copies it to channels-last
// order first. rows_faster() compares the estimated time with that of window_implicit.h. Before you
// call a function, set the window's `wgmma`.
//
// Example: if (rows_apply(fused)) program = rows_part(task, fused, {{"rows_n", 128}}, label);
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

bool rows_apply(const Fused& fused);
bool rows_faster(const Fused& fused);
std::vector<RecipeParameter> rows_parameters(const Fused& fused);
Json rows_safe(const Fused& fused);
bool rows_legal(const Fused& fused, const Json& params);
ProgramPart rows_part(const Task& task, const Fused& fused, const Json& params, const Label& label);

}  // namespace cutegen::recipes
