// SPDX-License-Identifier: Apache-2.0
// The elementwise recipe: any fused chain of pointwise operators, in one pass over memory.
//
// Contract: applies to a Fused without reductions. The kernel is flat if every operand has the
// layout of the output or is one element; otherwise it is strided (broadcasts, transpositions).
// Parameters: threads, vector, items, and for flat kernels waves (0: one CTA for each tile;
// otherwise a grid-stride loop with this many CTAs per SM).
//
// Example: elementwise_part(task, fused, {{"threads", 256}, {"vector", 4}, {"items", 2}}, label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> elementwise_parameters(const Fused& fused);
Json elementwise_safe(const Fused& fused);
ProgramPart elementwise_part(const Task& task, const Fused& fused, const Json& params,
                             const Label& label, const Overlap& overlap = {});

}  // namespace cutegen::recipes
