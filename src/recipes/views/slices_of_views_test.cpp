// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/slices_of_views.h"

#include <gtest/gtest.h>

namespace cutegen::recipes {
namespace {

Json ref_to(const std::string& name) {
  return {{"ref", name}};
}

Node node_of(const std::string& op, std::vector<Json> args, std::vector<Value> outputs) {
  Node n;
  n.id = outputs.front().name;
  n.op = op;
  n.args = std::move(args);
  n.outputs = std::move(outputs);
  return n;
}

// split(view(y), size, dim) of a y of 4000 x 3840.
Graph split_of_view(const Shape& viewed, int64_t size, int64_t dim, const Shape& part) {
  Graph g;
  g.placeholders = {{.name = "y", .dtype = DType::f32, .shape = {4000, 3840}}};
  g.nodes = {node_of("aten.view.default", {ref_to("y"), Json(viewed)},
                     {{.name = "v", .dtype = DType::f32, .shape = viewed}}),
             node_of("aten.split.Tensor", {ref_to("v"), size, dim},
                     {{.name = "s.0", .dtype = DType::f32, .shape = part},
                      {.name = "s.1", .dtype = DType::f32, .shape = part}})};
  g.outputs = {"s.0", "s.1"};
  return g;
}

TEST(SlicesOfViews, TakeTheSliceFirst) {
  const Graph g = slices_before_views(split_of_view({4, 1000, 3840}, 1920, -1, {4, 1000, 1920}));
  const Node* view = g.producer("s.1");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->op, "aten.view.default");
  EXPECT_EQ(view->outputs[0].shape, (Shape{4, 1000, 1920}));
  const Node* split = g.producer(view->args[0].at("ref"));
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->op, "aten.split.Tensor");
  EXPECT_EQ(split->args, (std::vector<Json>{ref_to("y"), 1920, 1}));
  EXPECT_EQ(split->outputs[1].shape, (Shape{4000, 1920}));
  EXPECT_EQ(g.outputs, (std::vector<std::string>{"s.0", "s.1"}));
}

TEST(SlicesOfViews, OfAMergedOrSplitAxisStay) {
  const Graph merged = split_of_view({4, 1000, 3840}, 2, 0, {2, 1000, 3840});
  EXPECT_EQ(slices_before_views(merged).producer("s.0")->op, "aten.split.Tensor");
  const Graph parts = split_of_view({4000, 4, 960}, 480, 2, {4000, 4, 480});
  EXPECT_EQ(slices_before_views(parts).producer("s.0")->op, "aten.split.Tensor");
}

}  // namespace
}  // namespace cutegen::recipes
