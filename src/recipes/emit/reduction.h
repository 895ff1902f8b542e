// SPDX-License-Identifier: Apache-2.0
// The reduction recipe: pointwise operators, reductions over the same axes, and pointwise operators
// on the results.
//
// Contract: the recipe applies to a loop nest (fuse/fused.h) with reductions. The recipe uses a row
// kernel if the reduced axis is innermost, and a column kernel otherwise. reduction_legal() returns
// whether the kernels support a combination of parameters. Clusters need `hopper`. The recipe's
// parameters are:
// - threads, vector, unroll
// - width: in a row kernel, the number of threads that share a row
// - columns: in a column kernel, the number of neighbouring threads that process different columns
// - cached: 1 keeps the elements in registers between passes, and 2 keeps the elements in shared
//   memory
// - cluster: the number of CTAs of a cluster that keep one row in their shared memory
// - online: 1 computes two dependent reductions in one pass
// - parts: the number of CTAs that share a row. If `parts` is above 1, each pass is a kernel, and
//   accumulators go to scratch memory.
//
// Example: reduction_part(task, fused, {{"threads", 256}, {"width", 32}, {"vector", 4}, ...},
// label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> reduction_parameters(const Fused& fused, bool hopper);
Json reduction_safe(const Fused& fused, bool hopper);
bool reduction_legal(const Fused& fused, const Json& params, bool hopper);
ProgramPart reduction_part(const Task& task, const Fused& fused, const Json& params,
                           const Label& label);

}  // namespace cutegen::recipes
