// SPDX-License-Identifier: Apache-2.0
// Moves constant scales from the factors of matrix products to their results.
//
// Contract: hoist_scales() returns a graph with the same results in exact arithmetic. If only one
// product reads a scaled factor, the new graph passes the unscaled tensor to the product and scales
// the product's result instead. The product's kernel can then read the tensor directly.
// Intermediate values before the scale are therefore not the same as in `graph`.
//
// Example: bmm(view(mul(q, 0.5)), k) -> mul(bmm(view(q), k), 0.5)
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// Returns how many nodes read each value. A result of the graph counts as having one more reader.
std::map<std::string, int> reads_of_values(const Graph& graph);
// Whether the operator only reshapes or copies its first argument, and keeps the elements' order.
bool keeps_elements(const Node& node);
// Returns c if the node only computes c * (its first argument) for a constant c, otherwise nullopt.
std::optional<double> constant_factor(const Node& node);
Graph hoist_scales(Graph graph);

}  // namespace cutegen::recipes
