// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/earlier_moves.h"

#include <gtest/gtest.h>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

Node move_node(const std::string& op, const std::string& from, std::vector<Json> more,
               const std::string& to, const Shape& shape) {
  Node n;
  n.id = to;
  n.op = "aten." + op + ".default";
  n.args = {{{"ref", from}}};
  n.args.insert(n.args.end(), more.begin(), more.end());
  n.outputs = {{.name = to, .dtype = DType::f32, .shape = shape}};
  return n;
}

// The windows of 7 x 7 pixels of a rolled image, after work on the channels of each pixel.
Graph windows_after(const std::string& op, std::vector<Json> more, bool rolled = true) {
  const Shape image{2, 28, 28, 96}, split{2, 4, 7, 4, 7, 96}, turned{2, 4, 4, 7, 7, 96};
  Graph g;
  g.placeholders = {{.name = "x", .dtype = DType::f32, .shape = image}};
  g.nodes = {move_node(op, "x", std::move(more), "work", image),
             move_node("gelu", "work", {}, "gelu", image)};
  if (rolled)
    g.nodes.push_back(move_node("roll", "gelu", {Json{-3, -3}, Json{1, 2}}, "rolled", image));
  g.nodes.push_back(move_node("view", rolled ? "rolled" : "gelu", {Json(split)}, "split", split));
  g.nodes.push_back(move_node("permute", "split", {Json{0, 1, 3, 2, 4, 5}}, "turned", turned));
  g.nodes.push_back(move_node("view", "turned", {Json{32, 49, 96}}, "out", {32, 49, 96}));
  g.outputs = {"out"};
  return g;
}

std::string input_name(const Graph& g, const std::string& value) {
  return reference(g.producer(value)->args[0]).value_or("");
}

TEST(EarlierMoves, ANormReadsTheRowsWhereTheyLie) {
  for (bool rolled : {true, false}) {
    const Graph g = earlier_moves(
        windows_after("native_layer_norm", {Json{96}, nullptr, nullptr, 1e-5}, rolled));
    EXPECT_EQ(base_name(g.producer("turned")->op), "gelu");
    const Node* norm = g.producer(input_name(g, "turned"));
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(base_name(norm->op), "native_layer_norm");
    EXPECT_EQ(norm->outputs[0].shape, (Shape{2, 4, 4, 7, 7, 96}));
    const Node* first = &g.nodes.front();
    EXPECT_EQ(base_name(first->op), rolled ? "roll" : "view");
    EXPECT_EQ(reference(first->args[0]), "x");
    EXPECT_EQ(base_name(g.producer("out")->op), "view");
  }
}

TEST(EarlierMoves, ASoftmaxOfAMovedAxisStays) {
  EXPECT_EQ(input_name(earlier_moves(windows_after("_softmax", {3, false})), "turned"),
            "work~late");
  EXPECT_EQ(input_name(earlier_moves(windows_after("_softmax", {1, false})), "turned"), "split");
}

TEST(EarlierMoves, AValueThatOthersReadStays) {
  Graph g = windows_after("native_layer_norm", {Json{96}, nullptr, nullptr, 1e-5});
  g.outputs.push_back("work");
  EXPECT_EQ(input_name(earlier_moves(g), "turned"), "split");
}

}  // namespace
}  // namespace cutegen::recipes
