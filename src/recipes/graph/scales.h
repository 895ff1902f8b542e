// SPDX-License-Identifier: Apache-2.0
// Moves constant scales from the factors of matrix products to their results.
//
// Contract: hoist_scales() returns a graph with the same results in exact arithmetic. If only one
// product reads a scaled factor, the product gets the unscaled tensor, which its kernel can read
// directly, and the scale moves to the product's result. Intermediate values between product and
// scale therefore differ from those in `graph`.
//
// Example: bmm(view(mul(q, 0.5)), k) -> mul(bmm(view(q), k), 0.5)
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// Returns how often nodes read each value, plus 1 for each value that is a result of the graph.
std::map<std::string, int> reads_of_values(const Graph& graph);
// Returns whether the operator only reshapes or copies its first argument, with the elements in the
// same order.
bool keeps_elements(const Node& node);
// Returns c if the node only computes c * (its first argument) for a constant c, otherwise nullopt.
std::optional<double> constant_factor(const Node& node);
Graph hoist_scales(Graph graph);

}  // namespace cutegen::recipes
