// SPDX-License-Identifier: Apache-2.0
// The reduction recipe: pointwise work, reductions over the same axes, pointwise work on the
// results.
//
// Contract: applies to a Fused with reductions. It uses a row kernel if the reduced axis is
// innermost, else a column kernel. Parameters: threads, vector, width (row: threads that share a
// row) or columns (column: threads in a team), unroll, cached (1: keep values in registers between
// passes, 2: in shared memory), cluster (CTAs of a cluster that keep one row in their shared
// memory), online (maximum and sum of exponentials in one pass), parts (CTAs that share a row;
// above 1: a kernel for each pass, accumulators in scratch between them). legal() says which
// combinations exist. Clusters need `hopper`.
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
