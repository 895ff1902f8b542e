// SPDX-License-Identifier: Apache-2.0
// Grouped convolutions of 16-bit tensors on the tensor cores (kernels/windows/grouped.cu), as part
// of the windows recipe.
//
// Contract: grouped_apply() returns whether the kernel supports the stage: an ordinary convolution
// of an image in float16 or bfloat16, with several groups and a stride of 1. grouped_faster()
// returns whether the groups are so small that other kernels leave most of a tensor-core step
// empty. Set WindowLeaf::wgmma (fuse/fused.h) before you call a function.
//
// Example: if (grouped_apply(fused)) program = grouped_part(task, fused, label);
#pragma once

#include "recipes/text/program_part.h"

namespace cutegen::recipes {

bool grouped_apply(const Fused& fused);
bool grouped_faster(const Fused& fused);
ProgramPart grouped_part(const Task& task, const Fused& fused, const Label& label);

// Returns whether the parameters select the kernel.
inline bool by_groups(const Json& params) {
  return params.value("by_groups", 0) == 1;
}

}  // namespace cutegen::recipes
