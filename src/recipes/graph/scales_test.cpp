// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/scales.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "recipes/graph/pointwise.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

// Causal attention as PyTorch writes it out: both factors of the first product are scaled.
Graph scaled_by(double scale) {
  Graph graph = golden_task("attention_causal").graph;
  for (Node& node : graph.nodes)
    if (constant_factor(node)) node.args[1] = scale;
  return graph;
}

// How many nodes multiply by a constant.
auto scales(const Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const Node& node) { return constant_factor(node).has_value(); });
}

TEST(HoistScales, FactorsPassTheirScalesToTheProduct) {
  const Graph graph = scaled_by(0.5);
  ASSERT_EQ(scales(graph), 2);
  const Graph hoisted = hoist_scales(graph);
  ASSERT_EQ(scales(hoisted), 1);
  const auto found = std::find_if(hoisted.nodes.begin(), hoisted.nodes.end(),
                                  [](const Node& node) { return constant_factor(node); });
  EXPECT_EQ(constant_factor(*found), 0.25);
}

TEST(HoistScales, ScalesThatMayPreventAnOverflowStay) {
  for (double scale : {1e-30, 1e30, 0.0}) EXPECT_EQ(scales(hoist_scales(scaled_by(scale))), 2);
}

}  // namespace
}  // namespace cutegen::recipes
