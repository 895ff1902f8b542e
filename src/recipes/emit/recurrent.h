// SPDX-License-Identifier: Apache-2.0
// The recurrent recipe: the steps of an LSTM, a GRU or a plain recurrent layer, in one kernel.
//
// Contract: the Fused has a `recurrence`. Its inputs are whole contiguous tensors, its outputs the
// states of all steps, the last state and, of an LSTM, the last cell. A rough model of a step's
// time chooses the safe parameters.
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
