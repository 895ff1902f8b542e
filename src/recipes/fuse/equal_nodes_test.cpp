// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/equal_nodes.h"

#include <gtest/gtest.h>

namespace cutegen::recipes {
namespace {

Node call(const std::string& to, const std::string& op, const std::vector<std::string>& from,
          const Json& number = {}) {
  Node node{.id = to,
            .op = "aten." + op,
            .args = {},
            .outputs = {{.name = to, .dtype = DType::f32, .shape = {4, 4}}}};
  for (const std::string& name : from) node.args.push_back({{"ref", name}});
  if (!number.is_null()) node.args.push_back(number);
  return node;
}

Graph graph_of(std::vector<Node> nodes, std::vector<std::string> outputs) {
  Graph g;
  for (const char* name : {"x", "w"})
    g.placeholders.push_back({.name = name, .dtype = DType::f32, .shape = {4, 4}});
  g.nodes = std::move(nodes);
  g.outputs = std::move(outputs);
  return g;
}

TEST(EqualNodes, ReadersReadTheFirstOne) {
  const Graph g = merge_equal_nodes(
      graph_of({call("a", "mm.default", {"x", "w"}), call("sin", "sin.default", {"a"}),
                call("b", "mm.default", {"x", "w"}), call("cos", "cos.default", {"b"}),
                call("c", "cos.default", {"a"}), call("out", "add.Tensor", {"sin", "cos"}),
                call("both", "add.Tensor", {"out", "c"})},
               {"both"}));
  EXPECT_EQ(g.find("b"), nullptr);
  ASSERT_NE(g.producer("cos"), nullptr);
  EXPECT_EQ(g.producer("cos")->args[0], (Json{{"ref", "a"}}));
  EXPECT_EQ(g.find("c"), nullptr);  // equal to "cos", since both read "a" now
  EXPECT_EQ(g.producer("both")->args[1], (Json{{"ref", "cos"}}));
}

TEST(EqualNodes, OtherArgumentsAndKindsOfValuesStay) {
  Node half = call("c", "mul.Tensor", {"x"}, 2);
  half.outputs[0].dtype = DType::f16;
  Node long_name = call("d", "mul.Tensor", {"x"}, 2);
  long_name.sizes = {{.index = 1, .tensor = "x", .dim = 0}};
  const Graph g = merge_equal_nodes(
      graph_of({call("a", "mul.Tensor", {"x"}, 2), call("b", "mul.Tensor", {"x"}, 3), half,
                long_name, call("e", "cat.default", {"a", "b", "c", "d"})},
               {"e"}));
  EXPECT_EQ(g.nodes.size(), 5u);
}

TEST(EqualNodes, ResultsAndRandomValuesStay) {
  const Graph g = merge_equal_nodes(
      graph_of({call("a", "relu.default", {"x"}), call("b", "relu.default", {"x"}),
                call("p", "rand_like.default", {"x"}), call("q", "rand_like.default", {"x"}),
                call("c", "add.Tensor", {"p", "q"})},
               {"a", "b", "c"}));
  EXPECT_EQ(g.nodes.size(), 5u);
  const auto sums = [](std::set<std::string> kept) {
    return merge_equal_nodes(
        graph_of({call("a", "sin.default", {"x"}), call("b", "sin.default", {"x"}),
                  call("c", "add.Tensor", {"a", "b"})},
                 {"c"}),
        std::move(kept));
  };
  EXPECT_EQ(sums({}).nodes.size(), 2u);
  EXPECT_EQ(sums({"b"}).nodes.size(), 3u);
}

}  // namespace
}  // namespace cutegen::recipes
