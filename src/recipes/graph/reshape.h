// SPDX-License-Identifier: Apache-2.0
// Reshapes: which axes of one shape correspond to which axes of another shape with the same
// elements.
//
// Contract: group_axes pairs runs of neighbouring axes with equal products, the shortest possible
// runs. It returns nothing if the shapes have different sizes or an axis is 0. Axes of size 1 join
// a neighbouring run.
//
// Example: group_axes({8, 64, 5, 5}, {8, 4, 16, 25}) -> {0}={0}, {1}={1,2}, {2,3}={3}
#pragma once

#include <optional>
#include <vector>

#include "tensor/dtype.h"

namespace cutegen::recipes {

struct AxisGroup {
  std::vector<size_t> from, to;
};

std::optional<std::vector<AxisGroup>> group_axes(const Shape& from, const Shape& to);
int64_t product(const Shape& shape);

}  // namespace cutegen::recipes
