// SPDX-License-Identifier: Apache-2.0
// Names the sizes of values in scratch memory, so that a plan's expressions stay short.
//
// Contract: the size of a value in scratch is an expression of the sizes of its operands, so in a
// deep network, these expressions grow with every stage. name_sizes() makes each long expression a
// symbol (a named expression) of the plan, and uses the symbol in all other expressions. The values
// of the sizes do not change.
//
// Example: a value y in scratch has the size ((dim(x,2)-3)/2+1). This expression becomes the symbol
// "y_size0", and the size of the next stage's value becomes ((y_size0-3)/2+1).
#pragma once

#include "base/json.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

void name_sizes(const std::vector<Scratch>& scratch, Json& plan);

}  // namespace cutegen::recipes
