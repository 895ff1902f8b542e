// SPDX-License-Identifier: Apache-2.0
// Finds which axes of a shape correspond to which axes of a reshaped shape.
//
// Contract: group_axes() divides the axes of both shapes into runs of neighbouring axes and pairs
// the runs that have the same number of elements. The runs are as short as possible. Axes of size 1
// join a neighbouring run. group_axes() returns nullopt if the shapes have different numbers of
// elements, or if an axis has size 0.
//
// Example: group_axes({8, 64, 5, 5}, {8, 4, 16, 25}) -> {0}={0}, {1}={1,2}, {2,3}={3}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "tensor/dtype.h"

namespace cutegen::recipes {

struct AxisGroup {
  std::vector<size_t> from, to;
};

std::optional<std::vector<AxisGroup>> group_axes(const Shape& from, const Shape& to);
int64_t product(const Shape& shape);

// If the value `name` is a view that merges the leading axes of another value into one axis,
// returns the other value. Returns nullptr otherwise.
const Value* before_merge(const Graph& graph, const std::string& name);

}  // namespace cutegen::recipes
