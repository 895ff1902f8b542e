// SPDX-License-Identifier: Apache-2.0
// Convolutions as products whose rows are positions (cutegen/conv_rows.cuh, conv_patches.cuh), as
// part of the windows recipe.
//
// Contract: rows_apply() returns whether the kernel supports the stage. The kernel supports
// ordinary and transposed convolutions in float16, bfloat16, tf32 or strict float32. The
// convolution must have one group and at least 24 input channels. Another kernel of the program
// first copies the input to channels-last order. In strict float32, an ordinary convolution must
// have stride 1, and the kernel multiplies pairs of half-precision numbers. If pairs are too
// inaccurate for some values, the kernel of window_implicit.h computes the results instead; the
// program has both kernels. rows_faster() returns whether the estimated time is shorter than with
// window_implicit.h. Set WindowLeaf::wgmma (fuse/fused.h) before you call a function.
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
