// SPDX-License-Identifier: Apache-2.0
// Convolutions on Hopper's tensor cores (cutegen/conv_wgmma.cuh), as part of the windows recipe.
//
// Contract: implicit_products() returns how many wgmma products replace one product of a stage: 1
// in float16 and bfloat16, 1 in float32 if the task allows tf32 in convolutions (PyTorch's
// default), 3 in strict float32, and 0 if the stage cannot use wgmma. fuse_channel_reductions()
// joins a convolution with the stage that reduces over its output channels, if one tile holds all
// these channels. Before you call any other function, set WindowLeaf::wgmma (fuse/fused.h) to the
// result of implicit_products(). implicit_legal() returns whether the kernel supports a choice of
// parameters. A tile consists of rows of 64 results, or of blocks of 8 x 8 results. If `flags` is
// not null, the kernels do nothing unless an earlier step of the program set one of these flags.
//
// Example: fused.window->wgmma = implicit_products(task, fused); params = implicit_safe(fused);
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

int implicit_products(const Task& task, const Fused& fused);
void fuse_channel_reductions(const Task& task, Stages& stages);
std::vector<RecipeParameter> implicit_parameters(const Fused& fused);
Json implicit_safe(const Fused& fused);
bool implicit_legal(const Fused& fused, const Json& params);
struct StepFlags {
  std::string tensor, count;  // names of the tensor of flags, and of its size
};
ProgramPart implicit_part(const Task& task, const Fused& fused, const Json& params,
                          const Label& label, const StepFlags* flags = nullptr);

}  // namespace cutegen::recipes
