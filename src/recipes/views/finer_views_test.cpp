// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/finer_views.h"

#include <gtest/gtest.h>

namespace cutegen::recipes {
namespace {

Node node_of(const std::string& op, const std::string& from, std::vector<Json> more, Value result) {
  Node n;
  n.id = result.name;
  n.op = op;
  n.args = {{{"ref", from}}};
  n.args.insert(n.args.end(), more.begin(), more.end());
  n.outputs = {std::move(result)};
  return n;
}

// x of [18, 4, 64]: its last two axes viewed as `merged`, the first two axes swapped, then `split`.
Graph graph_of(const Shape& merged, const Shape& split) {
  Graph g;
  g.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {18, 4, 64}}};
  const Shape turned{merged[1], merged[0], merged[2]};
  g.nodes = {node_of("aten.view.default", "x", {Json(merged)},
                     {.name = "v", .dtype = DType::f32, .shape = merged}),
             node_of("aten.transpose.int", "v", {0, 1},
                     {.name = "t", .dtype = DType::f32, .shape = turned}),
             node_of("aten.view.default", "t", {Json(split)},
                     {.name = "w", .dtype = DType::f32, .shape = split})};
  g.outputs = {"w"};
  return g;
}

TEST(FinerViews, KeepMergedAxesApart) {
  const Graph g = finer_views(graph_of({18, 16, 16}, {4, 4, 18, 16}));
  ASSERT_EQ(g.nodes.size(), 5U);
  EXPECT_EQ(g.nodes[2].args, (std::vector<Json>{{{"ref", "x"}}, {18, 4, 4, 16}}));
  EXPECT_EQ(g.nodes[3].op, "aten.permute.default");
  EXPECT_EQ(g.nodes[3].args[1], Json({1, 2, 0, 3}));
  EXPECT_EQ(g.nodes[3].outputs[0].shape, (Shape{4, 4, 18, 16}));
  EXPECT_EQ(g.producer("w")->args[0].at("ref"), g.nodes[3].outputs[0].name);
}

TEST(FinerViews, AddAxesOfSizeOne) {
  const Graph g = finer_views(graph_of({18, 16, 16}, {4, 4, 1, 18, 16}));
  EXPECT_EQ(g.producer("w")->outputs[0].shape, (Shape{4, 4, 1, 18, 16}));
  EXPECT_EQ(g.nodes.size(), 5U);
}

// The second view splits or merges other axes, or the first one already has these axes.
TEST(FinerViews, LeaveOtherViews) {
  EXPECT_EQ(finer_views(graph_of({18, 16, 16}, {2, 8, 18, 16})).nodes.size(), 3U);
  EXPECT_EQ(finer_views(graph_of({18, 16, 16}, {16, 288})).nodes.size(), 3U);
  EXPECT_EQ(finer_views(graph_of({18, 4, 64}, {4, 18, 64})).nodes.size(), 3U);
  EXPECT_EQ(finer_views(graph_of({9, 16, 32}, {16, 9, 4, 8})).nodes.size(), 3U);
}

}  // namespace
}  // namespace cutegen::recipes
