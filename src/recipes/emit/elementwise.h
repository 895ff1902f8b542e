// SPDX-License-Identifier: Apache-2.0
// The elementwise recipe: one kernel for any graph of pointwise operators, which reads and writes
// each element once.
//
// Contract: the recipe applies to a loop nest (fuse/fused.h) without reductions. The recipe uses a
// flat kernel (one-dimensional indices) if every operand has the layout of the output or only one
// element, and a strided kernel if some operand is broadcast, transposed or sliced. Its parameters
// are `threads`, `vector` and `items`. Flat kernels also have `waves`, and some strided kernels
// have `shared` or `tiled`. If `waves` is 0, the grid has one CTA for each tile; otherwise, the
// kernel is a grid-stride loop with `waves` CTAs per SM.
//
// Example: elementwise_part(task, fused, {{"threads", 256}, {"vector", 4}, {"items", 2}}, label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

bool is_flat(const Fused& fused);  // whether the kernel is a flat kernel
std::vector<RecipeParameter> elementwise_parameters(const Fused& fused);
Json elementwise_safe(const Fused& fused);
ProgramPart elementwise_part(const Task& task, const Fused& fused, const Json& params,
                             const Label& label, const Overlap& overlap = {});

}  // namespace cutegen::recipes
