// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/einsum_views.h"

#include <gtest/gtest.h>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

Node link(const std::string& op, const std::string& from, Json argument, const std::string& to,
          const Shape& shape) {
  Node n;
  n.id = to;
  n.op = op;
  n.args = {{{"ref", from}}, std::move(argument)};
  n.outputs = {{.name = to, .dtype = DType::f32, .shape = shape}};
  return n;
}

// An operand of einsum("bhnd,bhne->bhde"): x of [4, 8, 2048, 64] with an axis of size 1 behind.
Graph operand(const Json& first, const Json& second, const Shape& turned, const Shape& again,
              const Shape& viewed) {
  Graph g;
  g.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {4, 8, 2048, 64}}};
  g.nodes = {link("aten.unsqueeze.default", "x", 4, "long", {4, 8, 2048, 64, 1}),
             link("aten.permute.default", "long", first, "once", turned),
             link("aten.permute.default", "once", second, "twice", again),
             link("aten.view.default", "twice", viewed, "out", viewed)};
  g.outputs = {"out"};
  return g;
}

TEST(EinsumViews, PermutationsThatCancelAreOneView) {
  const Graph g = einsum_views(operand({0, 1, 4, 3, 2}, {0, 1, 4, 3, 2}, {4, 8, 1, 64, 2048},
                                       {4, 8, 2048, 64, 1}, {32, 2048, 64}));
  const Node* out = g.producer("out");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->op, "aten.view.default");
  EXPECT_EQ(out->args[0], (Json{{"ref", "x"}}));
  EXPECT_EQ(out->outputs[0].shape, (Shape{32, 2048, 64}));
}

TEST(EinsumViews, MergedNeighboursAreMergedFirst) {
  const Graph g = einsum_views(operand({0, 1, 3, 4, 2}, {0, 1, 2, 4, 3}, {4, 8, 64, 1, 2048},
                                       {4, 8, 64, 2048, 1}, {32, 64, 2048}));
  const Node* out = g.producer("out");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->op, "aten.permute.default");
  EXPECT_EQ(out->args[1], (Json{0, 2, 1}));
  const Node* merged = g.producer(*reference(out->args[0]));
  ASSERT_NE(merged, nullptr);
  EXPECT_EQ(merged->args[0], (Json{{"ref", "x"}}));
  EXPECT_EQ(merged->outputs[0].shape, (Shape{32, 2048, 64}));
}

TEST(EinsumViews, AxesThatAreNoNeighboursAreAViewOfOnePermutation) {
  const Graph g = einsum_views(operand({0, 2, 1, 3, 4}, {0, 1, 2, 3, 4}, {4, 2048, 8, 64, 1},
                                       {4, 2048, 8, 64, 1}, {8192, 8, 64}));
  const Node* turned = g.producer(*reference(g.producer("out")->args[0]));
  ASSERT_NE(turned, nullptr);
  EXPECT_EQ(turned->op, "aten.permute.default");
  EXPECT_EQ(turned->args[0], (Json{{"ref", "x"}}));
  EXPECT_EQ(turned->args[1], (Json{0, 2, 1, 3}));
  EXPECT_EQ(turned->outputs[0].shape, (Shape{4, 2048, 8, 64}));
}

TEST(EinsumViews, ACopyBeforeTheViewIsRemoved) {
  Graph g = operand({0, 2, 1, 3, 4}, {0, 1, 2, 3, 4}, {4, 2048, 8, 64, 1}, {4, 2048, 8, 64, 1},
                    {8192, 8, 64});
  Node clone = link("aten.clone.default", "twice", {}, "copy", {4, 2048, 8, 64, 1});
  clone.args.resize(1);
  g.nodes.insert(g.nodes.end() - 1, clone);
  g.nodes.back().args[0] = {{"ref", "copy"}};
  g = einsum_views(std::move(g));
  EXPECT_EQ(g.producer(*reference(g.producer("out")->args[0]))->args[0], (Json{{"ref", "x"}}));
}

}  // namespace
}  // namespace cutegen::recipes
