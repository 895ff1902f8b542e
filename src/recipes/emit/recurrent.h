// SPDX-License-Identifier: Apache-2.0
// The recurrent recipe: one kernel that computes all steps of an LSTM, GRU or RNN layer.
//
// Contract: the stage (fuse/fused.h) has a `recurrence`. Its inputs are whole contiguous tensors.
// Its outputs are the states of all steps, the last state and, for an LSTM, the last cell state. To
// choose the initial parameters (recurrent_safe()), the recipe estimates the time of a step with a
// rough model.
//
// Example: recurrent_part(fused, recurrent_safe(fused, true), label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> recurrent_parameters(bool hopper);
Json recurrent_safe(const Fused& fused, bool hopper);
bool recurrent_legal(const Fused& fused, const Json& params, bool hopper);
ProgramPart recurrent_part(const Fused& fused, const Json& params, const Label& label);

}  // namespace cutegen::recipes
