// SPDX-License-Identifier: Apache-2.0
// The kernel of resampling (padding, flips, rolls, interpolation, adaptive pooling) with the
// pointwise operators that follow.
//
// Contract: the stage's window has the kind `resample`. Each function corresponds to a function in
// window.h.
//
// Example: resample_part(task, fused, resample_safe(fused), Label{""})
#pragma once

#include "recipes/fuse/fused.h"
#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> resample_parameters(const Fused& fused);
Json resample_safe(const Fused& fused);
ProgramPart resample_part(const Task& task, const Fused& fused, const Json& params,
                          const Label& label);

}  // namespace cutegen::recipes
