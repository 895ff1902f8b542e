// SPDX-License-Identifier: Apache-2.0
// The attention recipe: one kernel on Hopper that computes scores, softmax and weighted sum.
//
// Contract: attention_part() fills the template kernels/attention/fused.cu for one stage of a
// program. The head sizes (of q, k and v) are compile-time constants of the kernel; all other sizes
// are kernel arguments.
//
// Example: attention_part(task, attention, attention_safe(attention), label)
#pragma once

#include "recipes/nest/attended.h"
#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

Json attention_safe(const Attention& attention);
std::vector<RecipeParameter> attention_parameters(const Attention& attention);
bool attention_legal(const Attention& attention, const Json& params);
ProgramPart attention_part(const Task& task, const Attention& attention, const Json& params,
                           const Label& label);

}  // namespace cutegen::recipes
