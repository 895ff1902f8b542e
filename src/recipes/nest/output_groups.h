// SPDX-License-Identifier: Apache-2.0
// Output groups: divides the outputs of a graph into groups that one loop nest can compute.
//
// Contract: by_shape() puts outputs of one shape together. by_part() divides each output that is
// computed from a joined tensor (cat, stack) into parts, one for each operand, and returns an empty
// list if there is no such output. side_by_side() puts equal parts together, and returns an empty
// list if no two parts are equal.
//
// Example: by_part(graph, {cat([x, y]) * 2}) -> {{the part of x}, {the part of y}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

using Outputs = std::vector<Region::Output>;

// The operands of a join, and the axis along which the join concatenates or stacks them.
struct Joined {
  size_t axis = 0;
  std::vector<std::string> values;
  std::vector<int64_t> lengths;  // of the values along the axis
};

std::optional<Joined> joined_axis(const Graph& graph, const Node& join);
std::vector<Outputs> by_shape(const Graph& graph, const Outputs& outputs);
std::vector<Outputs> by_part(const Graph& graph, const Outputs& outputs);
std::vector<Outputs> side_by_side(const Graph& graph, const std::vector<Outputs>& parts);

}  // namespace cutegen::recipes
