// SPDX-License-Identifier: Apache-2.0
#include "recipes/spatial/cut_windows.h"

#include <gtest/gtest.h>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

Node op_of(const std::string& id, const std::string& op, std::vector<Json> args, Shape shape) {
  Node node;
  node.id = id, node.op = "aten." + op, node.args = std::move(args);
  node.outputs.push_back({.name = id, .dtype = DType::f32, .shape = std::move(shape)});
  return node;
}

Json of(const std::string& name) {
  return {{"ref", name}};
}

// conv1d(x.transpose(1, 2), w, padding=3)[..., :end], with x of [2, 50, 8] and w of [8, 1, 4].
struct Causal {
  Graph graph;
  Causal() {
    graph.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {2, 50, 8}},
                          {.name = "w", .dtype = DType::f32, .shape = {8, 1, 4}}};
    graph.nodes = {
        op_of("turned", "transpose.int", {of("x"), 1, 2}, {2, 8, 50}),
        op_of("conv", "convolution.default",
              {of("turned"), of("w"), Json(), Json{1}, Json{3}, Json{1}, false, Json{0}, 8},
              {2, 8, 53}),
        op_of("part", "slice.Tensor", {of("conv"), -1, 0, 50, 1}, {2, 8, 50})};
    graph.nodes[2].sizes = {{.index = 3, .tensor = "x", .dim = 1}};
    graph.outputs = {"part"};
  }
  Node& conv() { return graph.nodes[1]; }
  Node& part() { return graph.nodes[2]; }
  bool folds() const { return fold_cut_results(graph).nodes.size() < graph.nodes.size(); }
};

TEST(CutWindows, ACausalConvolutionPadsOneEnd) {
  const Graph folded = fold_cut_results(Causal().graph);
  ASSERT_EQ(folded.nodes.size(), 2u);
  const Node* conv = folded.producer("part");
  ASSERT_EQ(conv->op, "aten.convolution.default");
  EXPECT_EQ(conv->args[4], Json{3});
  EXPECT_EQ(conv->args[9], Json::array({-3}));  // 3 fewer behind than before
  EXPECT_EQ(conv->outputs.front().shape, (Shape{2, 8, 50}));
}

TEST(CutWindows, AnEndThatCountsFromTheEndIsTheSame) {
  Causal c;
  c.part().sizes.clear();
  EXPECT_FALSE(c.folds()) << "another length may be cut at 50, too";
  c.part().args[3] = -3;
  EXPECT_TRUE(c.folds());
}

TEST(CutWindows, OtherSlicesAndConvolutionsStay) {
  Causal start, step, channels, other, strided, read, turned;
  start.part().args[2] = 1;
  step.part().args[4] = 2;
  channels.part().args[1] = 1;
  other.part().sizes.front().dim = 2;  // the number of channels
  strided.conv().args[3] = Json{2};
  read.graph.outputs.push_back("conv");
  turned.conv().args[6] = true;
  for (const Causal* c : {&start, &step, &channels, &other, &strided, &read, &turned})
    EXPECT_FALSE(c->folds());
}

}  // namespace
}  // namespace cutegen::recipes
