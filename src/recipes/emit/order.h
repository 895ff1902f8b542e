// SPDX-License-Identifier: Apache-2.0
// The order recipe: kernels for topk, sort and argsort along the last axis, with pointwise
// operators on the elements before they are sorted.
//
// Contract: the loop nest (fuse/fused.h) has a `choice` (a topk, sort or argsort), and only its
// innermost axis is reduced. For a topk with few results, the threads that share a row select the
// results without sorting the row. Otherwise, a CTA sorts the row in shared memory. If the row does
// not fit there, CTAs sort tiles of it and merge these tiles.
//
// Example: order_part(task, fused, order_safe(fused), label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> order_parameters(const Fused& fused);
Json order_safe(const Fused& fused);
bool order_legal(const Fused& fused, const Json& params);
ProgramPart order_part(const Task& task, const Fused& fused, const Json& params,
                       const Label& label);

}  // namespace cutegen::recipes
