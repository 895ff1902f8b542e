// SPDX-License-Identifier: Apache-2.0
// The matmul recipe: one matrix product in any layout with what follows it in one pass.
//
// Contract: applies to a graph with one mm, bmm, mv (or what is made of them: linear, einsum, ...)
// of views of the task's tensors, followed by pointwise work. Where the math mode allows,
// `tensor_cores` multiplies in tf32, f16 or bf16. `split` shares the depth among CTAs, whose parts
// a second kernel adds up. The safe choice is float32 on the ordinary cores, with large tiles where
// these fill the GPU.
//
// Example: matmul_program(task, contraction, {{"tile_m", 64}, {"tile_n", 64}, ...})
#pragma once

#include "core/program.h"
#include "recipes/emit/recipes.h"
#include "recipes/nest/contraction.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> matmul_parameters(const Contraction& c);
Json matmul_safe(const Contraction& c);
// Tiles that the threads can share, and that shared memory and registers hold.
bool matmul_legal(const Contraction& c, const Json& params);
Result<KernelProgram> matmul_program(const Task& task, const Contraction& c, const Json& params);

}  // namespace cutegen::recipes
