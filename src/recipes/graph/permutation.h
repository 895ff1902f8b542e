// SPDX-License-Identifier: Apache-2.0
// The order of axes in which a transposition reads its input.
//
// Contract: integer() reads an axis of a tensor with `rank` axes, and returns nullopt if there is
// no such axis. A negative axis counts from the end. permutation() returns an empty list for
// operators that do not transpose. moves_ones_only() returns whether a transposition moves only
// axes of size 1.
//
// Example: permutation(node, "t", 2) is {1, 0}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

std::optional<int64_t> integer(const Json& json, size_t rank);
std::vector<size_t> permutation(const Node& node, const std::string& base, size_t rank);
bool moves_ones_only(const std::vector<size_t>& order, const Shape& shape);

}  // namespace cutegen::recipes
