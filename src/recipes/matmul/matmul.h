// SPDX-License-Identifier: Apache-2.0
// The matmul recipe: one matrix product in any layout, fused with the operators after it.
//
// Contract: a stage with one mm, bmm or mv (or an operator made of them: linear, einsum, ...) of
// tensors, followed by pointwise work, becomes one kernel. If the math mode allows it,
// `tensor_cores` multiplies in tf32, f16 or bf16. `split` divides the depth among CTAs; a second
// kernel adds their parts. The safe choice is float32 on the CUDA cores, with large tiles if these
// fill the GPU.
//
// Example: matmul_part(task, contraction, {{"tile_m", 64}, {"tile_n", 64}, ...}, label)
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> matmul_parameters(const Contraction& c);
Json matmul_safe(const Contraction& c);
// Whether the threads can divide the tile, and shared memory and registers can hold it.
bool matmul_legal(const Contraction& c, const Json& params);
ProgramPart matmul_part(const Task& task, const Contraction& c, const Json& params,
                        const Label& label);

}  // namespace cutegen::recipes
