// SPDX-License-Identifier: Apache-2.0
// The reduction recipe: pointwise work, reductions over the same axes, pointwise work on the
// results.
//
// Contract: applies to a Fused with reductions. Row kernel when the reduced axis is innermost,
// column kernel otherwise. Parameters: threads, vector, width (row: threads that share a row) or
// columns (column: threads side by side), unroll, cached (keep what was read in registers between
// passes), online (maximum and sum of exponentials in one pass), parts (CTAs that share a row; over
// 1: a kernel for each pass, accumulators in scratch between them). legal() tells which
// combinations exist.
//
// Example: reduction_part(task, fused, {{"threads", 256}, {"width", 32}, {"vector", 4}, ...},
// label)
#pragma once

#include "recipes/emit/program_part.h"
#include "recipes/emit/recipes.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> reduction_parameters(const Fused& fused);
Json reduction_safe(const Fused& fused);
bool reduction_legal(const Fused& fused, const Json& params);
ProgramPart reduction_part(const Task& task, const Fused& fused, const Json& params,
                           const Label& label);

}  // namespace cutegen::recipes
