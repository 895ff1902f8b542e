// SPDX-License-Identifier: Apache-2.0
// Moves constant scales from the factors of matrix products to their results.
//
// Contract: hoist_scales() returns a graph with equal results in exact arithmetic. A factor that
// was scaled, and is used by this product only, becomes a view of its tensor, which the product's
// kernel reads as it is. Values in between, which nothing else reads, change.
//
// Example: bmm(view(mul(q, 0.5)), k) -> mul(bmm(view(q), k), 0.5)
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// How often each value is read; results of the graph count as read once more.
std::map<std::string, int> reads_of_values(const Graph& graph);
// Whether the operator gives its first argument another shape, or copies it, in the same order.
bool keeps_elements(const Node& node);
// The constant by which the node multiplies its first argument, if it does nothing else.
std::optional<double> constant_factor(const Node& node);
Graph hoist_scales(Graph graph);

}  // namespace cutegen::recipes
