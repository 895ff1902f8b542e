// SPDX-License-Identifier: Apache-2.0
// Moves constant scales from the factors of matrix products to their results.
//
// Contract: hoist_scales() returns a graph with the same results in exact arithmetic. If only one
// product reads a scaled factor, the factor becomes a view of its unscaled tensor, which the
// product's kernel reads directly. Values between the tensor and the product change.
//
// Example: bmm(view(mul(q, 0.5)), k) -> mul(bmm(view(q), k), 0.5)
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// Counts the nodes that read each value; being a result of the graph counts as one more reader.
std::map<std::string, int> reads_of_values(const Graph& graph);
// Whether the operator only reshapes or copies its first argument, with the elements in the same
// order.
bool keeps_elements(const Node& node);
// The constant by which the node multiplies its first argument, if it does nothing else.
std::optional<double> constant_factor(const Node& node);
Graph hoist_scales(Graph graph);

}  // namespace cutegen::recipes
