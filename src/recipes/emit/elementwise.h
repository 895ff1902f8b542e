// SPDX-License-Identifier: Apache-2.0
// The elementwise recipe: any fused chain of pointwise operators, in one pass over memory.
//
// Contract: applies to a Fused without reductions. Flat when every operand lies as the output does
// or is one element; strided (broadcasts, transpositions) otherwise. Parameters: threads, vector,
// items, and for flat kernels waves (0: a CTA a tile; else CTAs per SM of a grid-stride loop).
//
// Example: elementwise_part(task, fused, {{"threads", 256}, {"vector", 4}, {"items", 2}}, label)
#pragma once

#include "recipes/emit/program_part.h"
#include "recipes/emit/recipes.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> elementwise_parameters(const Fused& fused);
Json elementwise_safe(const Fused& fused);
ProgramPart elementwise_part(const Task& task, const Fused& fused, const Json& params,
                             const Label& label);

}  // namespace cutegen::recipes
