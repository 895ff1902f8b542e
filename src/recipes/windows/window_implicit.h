// SPDX-License-Identifier: Apache-2.0
// Convolutions on Hopper's tensor cores (cutegen/conv_wgmma.cuh), as part of the windows recipe.
//
// Contract: implicit_products() returns how many products by wgmma replace one product of a stage:
// 1 in float16, in bfloat16, and if float32 convolutions are in tf32, as PyTorch ships; 3 in strict
// float32; 0 if the stage cannot use wgmma. A tile consists of rows of 64 results, or of blocks
// of 8 x 8 results. implicit_legal() says whether the kernel can run with these parameters.
// fuse_channel_reductions() joins a convolution with the stage that reduces over its output
// channels, if one tile holds all these channels. The other functions need the window's `wgmma`
// set.
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
ProgramPart implicit_part(const Task& task, const Fused& fused, const Json& params,
                          const Label& label);

}  // namespace cutegen::recipes
