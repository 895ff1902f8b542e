// SPDX-License-Identifier: Apache-2.0
// The windows recipe: convolutions and pooling, fused with the pointwise operators that follow.
//
// Contract: a stage with a window (a convolution or pooling) becomes one float32 kernel on the CUDA
// cores, which runs on every GPU that cutegen supports. Convolutions have one to three axes; they
// may have groups, strides and dilation, and may be transposed. If WindowLeaf::wgmma (fuse/fused.h)
// is not 0, the recipe may use Hopper's tensor cores instead (window_implicit.h).
//
// Example: window_part(task, fused, {{"channels", 16}, {"pixels", 4}, {"threads", 128}}, label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> window_parameters(const Fused& fused);
Json window_safe(const Fused& fused);
bool window_legal(const Fused& fused, const Json& params);
ProgramPart window_part(const Task& task, const Fused& fused, const Json& params,
                        const Label& label);

}  // namespace cutegen::recipes
