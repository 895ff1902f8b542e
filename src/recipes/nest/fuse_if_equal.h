// SPDX-License-Identifier: Apache-2.0
// Builds a loop nest for a region (a part of a graph). The nest is right only at shapes at which
// certain sizes are equal, for example the sizes of the operands of a `cat`.
//
// Contract: fuse_if_equal() returns one loop nest for all outputs of the region, with the condition
// on sizes at which the nest is right (Fused::when). Other stages must compute the outputs at all
// other shapes. The function returns nullopt if such a nest does more than pointwise work, reads a
// value in scratch memory, or changes a tensor that it reads. It also returns nullopt if the nest
// is right at every shape.
//
// Example: cat([x, y], 1) -> both parts, when "(dim(x,1) == dim(y,1))"
#pragma once

#include <optional>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

std::optional<Fused> fuse_if_equal(Region region);

}  // namespace cutegen::recipes
