// SPDX-License-Identifier: Apache-2.0
// The matmul recipe: a kernel for one matrix product in any layout, fused with the pointwise
// operators after it.
//
// Contract: a stage with one mm, bmm or mv (or an operator that consists of these, such as linear
// or einsum) becomes one kernel. If the task's math mode (fp32, tf32, bf16 or fp16) allows tensor
// cores, the parameter `tensor_cores` selects multiplication in tf32, f16 or bf16. The parameter
// `split` divides the depth (the axis that the product sums over) among CTAs, and a second kernel
// adds their results. matmul_safe() returns the initial parameters, which a cost model chooses
// (matmul_tiling.h).
//
// Example: matmul_part(task, contraction, {{"tile_m", 64}, {"tile_n", 64}, ...}, label)
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> matmul_parameters(const Contraction& c);
Json matmul_safe(const Contraction& c);
// Returns whether the threads can divide the tile evenly, and the tile fits in shared memory and
// registers.
bool matmul_legal(const Contraction& c, const Json& params);
ProgramPart matmul_part(const Task& task, const Contraction& c, const Json& params,
                        const Label& label);

}  // namespace cutegen::recipes
