// SPDX-License-Identifier: Apache-2.0
// The order recipe: the first elements of each row in order, or a sorted row, with pointwise work
// on the elements before it.
//
// Contract: the Fused has a `choice`, and its innermost axis is the only reduced one. A few
// elements are selected one by one, with threads that share a row; a longer result is sorted by a
// CTA in shared memory.
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
