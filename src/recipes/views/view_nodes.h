// SPDX-License-Identifier: Apache-2.0
// Reads and writes nodes that view a tensor, for the passes of this folder.
//
// Contract: is_reshape() is true for operators that only change the shape. input_of() returns the
// tensor that a node reads first, or nullptr if that is a constant. node_of() returns a node with
// one tensor and one other argument.
//
// Example: node_of("turn", "aten.permute.default", "x", {1, 0}, result)
#pragma once

#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

bool is_reshape(const Node& node);
const Value* input_of(const Graph& graph, const Node& node);
Node node_of(const std::string& id, const std::string& op, const std::string& from, Json argument,
             Value result);

}  // namespace cutegen::recipes
