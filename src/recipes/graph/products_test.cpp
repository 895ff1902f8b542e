// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/products.h"

#include <gtest/gtest.h>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

Node made_by(const std::string& id, const std::string& op, std::vector<Json> args, Shape shape) {
  Node node;
  node.id = id, node.op = "aten." + op, node.args = std::move(args);
  node.outputs.push_back({.name = id, .dtype = DType::bf16, .shape = std::move(shape)});
  return node;
}

Json refer_to(const std::string& name) {
  return {{"ref", name}};
}

// torch.matmul(q, k.transpose(-1, -2)) with q of [2, 3, 1, 8] and k of [2, 3, 5, 8].
Graph scores(const std::string& turn, Json axes) {
  Graph g;
  g.placeholders = {{.name = "q", .dtype = DType::bf16, .shape = {6, 1, 8}},
                    {.name = "k", .dtype = DType::bf16, .shape = {2, 3, 5, 8}}};
  g.nodes = {
      made_by("turned", turn, {refer_to("k"), axes}, {2, 3, 8, 5}),
      made_by("same", "expand.default", {refer_to("turned"), Json{2, 3, 8, 5}}, {2, 3, 8, 5}),
      made_by("merged", "view.default", {refer_to("same"), Json{6, 8, 5}}, {6, 8, 5}),
      made_by("out", "bmm.default", {refer_to("q"), refer_to("merged")}, {6, 1, 5})};
  g.outputs = {"out"};
  return g;
}

TEST(Products, ARowSumsAlongTheRowsOfATransposedMatrix) {
  const auto g = as_reduction(scores("permute.default", {0, 1, 3, 2}), "out", Vector::first);
  ASSERT_TRUE(g) << g.error().text();
  const Node* last = g->producer("out");
  ASSERT_EQ(last->op, "aten.unsqueeze.default");
  const Node* sum = g->producer(*reference(last->args[0]));
  EXPECT_EQ(sum->args[1], Json::array({-1}));
  EXPECT_EQ(sum->outputs.front().shape, (Shape{6, 5}));
  const Node* terms = g->producer(*reference(sum->args[0]));
  EXPECT_EQ(reference(terms->args[1]), "q");
  const Node* rows = g->producer(*reference(terms->args[0]));
  EXPECT_EQ(rows->op, "aten.view.default");
  EXPECT_EQ(reference(rows->args[0]), "k");
  EXPECT_EQ(rows->outputs.front().shape, (Shape{6, 5, 8}));
}

// The heads of this matrix are transposed, too, so that no view of `k` has its rows.
TEST(Products, OtherTranspositionsSumDownTheColumns) {
  const auto g = as_reduction(scores("permute.default", {1, 0, 3, 2}), "out", Vector::first);
  ASSERT_TRUE(g) << g.error().text();
  EXPECT_EQ(g->producer("out")->args[1], Json::array({1}));
}

}  // namespace
}  // namespace cutegen::recipes
