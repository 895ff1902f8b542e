// SPDX-License-Identifier: Apache-2.0
// Convolutions on Hopper's tensor cores (cutegen/conv_wgmma.cuh), as part of the windows recipe.
//
// Contract: implicit_applies() says whether a stage may multiply by wgmma in the task's math mode:
// float32 where convolutions are in tf32, as PyTorch ships; float16; bfloat16. A tile has `wide`
// lines of 64 results or blocks of 8 x 8. implicit_legal() knows what fits shared memory and
// registers.
//
// Example: if (implicit_applies(task, fused)) params = implicit_safe(fused);
#pragma once

#include "recipes/emit/program_part.h"
#include "recipes/emit/recipes.h"

namespace cutegen::recipes {

bool implicit_applies(const Task& task, const Fused& fused);
std::vector<RecipeParameter> implicit_parameters(const Fused& fused);
Json implicit_safe(const Fused& fused);
bool implicit_legal(const Fused& fused, const Json& params);
ProgramPart implicit_part(const Task& task, const Fused& fused, const Json& params,
                          const Label& label);

}  // namespace cutegen::recipes
