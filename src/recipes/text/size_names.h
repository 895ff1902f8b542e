// SPDX-License-Identifier: Apache-2.0
// Size names: short names for the sizes of kept values.
//
// Contract: the size of a value in scratch follows from the sizes of its operands, so in a deep
// network these expressions grow with every stage. name_sizes() makes each long one a symbol of the
// plan, and every other expression uses that symbol. The values do not change.
//
// Example: scratch y of shape ((dim(x,2)-3)/2+1): the symbol "y_size0" is this expression, and the
// next stage's size is ((y_size0-3)/2+1).
#pragma once

#include "base/json.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

void name_sizes(const std::vector<Scratch>& scratch, Json& plan);

}  // namespace cutegen::recipes
