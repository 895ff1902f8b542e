// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/dependence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A task with inputs of the given shapes, whose output is the last node's value.
struct Net {
  Task task;

  explicit Net(const std::vector<std::pair<std::string, Shape>>& inputs) {
    task.shapes.emplace_back();
    for (const auto& [name, shape] : inputs) {
      task.tensors.push_back({.name = name, .shape = shape});
      task.graph.placeholders.push_back({.name = name, .shape = shape});
      task.shapes[0].tensors[name] = shape;
    }
  }

  Net& node(const std::string& id, const std::string& op, std::vector<Json> args, Shape shape) {
    Node out{.id = id, .op = op, .args = std::move(args)};
    out.outputs = {{.name = id, .shape = std::move(shape)}};
    task.graph.nodes.push_back(std::move(out));
    return *this;
  }

  auto behind(const std::vector<int64_t>& at) {
    task.graph.outputs = {task.graph.nodes.back().id};
    task.tensors.push_back({.name = "out", .role = TensorRole::output});
    return elements_behind(task, task.shapes[0], "out", at);
  }
};

Json ref(const char* name) {
  return {{"ref", name}};
}
IndexRange one(int64_t i) {
  return {i, i};
}

TEST(Dependence, PointwiseOperatorsNeedTheSameIndexWithBroadcasting) {
  auto found = Net({{"x", {4, 8}}, {"bias", {8}}, {"scale", {4, 1}}})
                   .node("a", "aten.add.Tensor", {ref("x"), ref("bias")}, {4, 8})
                   .node("b", "aten.mul.Tensor", {ref("a"), ref("scale")}, {4, 8})
                   .node("c", "aten.relu_.default", {ref("b")}, {4, 8})
                   .behind({2, 5});
  EXPECT_THAT(*found.at("x"), ElementsAre(one(2), one(5)));
  EXPECT_THAT(*found.at("bias"), ElementsAre(one(5)));
  EXPECT_THAT(*found.at("scale"), ElementsAre(one(2), one(0)));
}

TEST(Dependence, ReductionsAndSoftmaxNeedAWholeLine) {
  auto sum = Net({{"x", {4, 8, 3}}})
                 .node("s", "aten.sum.dim_IntList", {ref("x"), {1}}, {4, 3})
                 .behind({2, 1});
  EXPECT_THAT(*sum.at("x"), ElementsAre(one(2), IndexRange{0, 7}, one(1)));
  auto kept = Net({{"x", {4, 8, 3}}})
                  .node("s", "aten.mean.dim", {ref("x"), {-1}, true}, {4, 8, 1})
                  .behind({2, 1, 0});
  EXPECT_THAT(*kept.at("x"), ElementsAre(one(2), one(1), IndexRange{0, 2}));
  auto all = Net({{"x", {4, 8}}}).node("s", "aten.sum.default", {ref("x")}, {}).behind({});
  EXPECT_THAT(*all.at("x"), ElementsAre(IndexRange{0, 3}, IndexRange{0, 7}));
  auto row = Net({{"x", {4, 8}}})
                 .node("s", "aten._softmax.default", {ref("x"), 1, false}, {4, 8})
                 .behind({3, 0});
  EXPECT_THAT(*row.at("x"), ElementsAre(one(3), IndexRange{0, 7}));
  auto prefix =
      Net({{"x", {4, 8}}}).node("s", "aten.cumsum.default", {ref("x"), 1}, {4, 8}).behind({3, 2});
  EXPECT_THAT(*prefix.at("x"), ElementsAre(one(3), IndexRange{0, 2}));
}

TEST(Dependence, ProductsNeedARowAndAColumn) {
  auto found = Net({{"x", {4, 16}}, {"w", {6, 16}}, {"b", {6}}})
                   .node("wt", "aten.t.default", {ref("w")}, {16, 6})
                   .node("y", "aten.addmm.default", {ref("b"), ref("x"), ref("wt")}, {4, 6})
                   .behind({1, 5});
  EXPECT_THAT(*found.at("x"), ElementsAre(one(1), IndexRange{0, 15}));
  EXPECT_THAT(*found.at("w"), ElementsAre(one(5), IndexRange{0, 15}));
  EXPECT_THAT(*found.at("b"), ElementsAre(one(5)));
  auto batched = Net({{"a", {2, 1, 4, 16}}, {"b", {3, 16, 6}}})
                     .node("y", "aten.matmul.default", {ref("a"), ref("b")}, {2, 3, 4, 6})
                     .behind({1, 2, 3, 4});
  EXPECT_THAT(*batched.at("a"), ElementsAre(one(1), one(0), one(3), IndexRange{0, 15}));
  EXPECT_THAT(*batched.at("b"), ElementsAre(one(2), IndexRange{0, 15}, one(4)));
  auto vector = Net({{"a", {4, 16}}, {"v", {16}}})
                    .node("y", "aten.mv.default", {ref("a"), ref("v")}, {4})
                    .behind({3});
  EXPECT_THAT(*vector.at("a"), ElementsAre(one(3), IndexRange{0, 15}));
  EXPECT_THAT(*vector.at("v"), ElementsAre(IndexRange{0, 15}));
}

TEST(Dependence, ConvolutionsAndPoolsNeedAWindowInsideTheInput) {
  auto found = Net({{"x", {2, 3, 9, 9}}, {"w", {4, 3, 3, 3}}, {"b", {4}}})
                   .node("y", "aten.convolution.default",
                         {ref("x"), ref("w"), ref("b"), {2, 2}, {1, 1}, {1, 1}, false, {0, 0}, 1},
                         {2, 4, 5, 5})
                   .behind({1, 3, 0, 4});
  EXPECT_THAT(*found.at("x"),
              ElementsAre(one(1), IndexRange{0, 2}, IndexRange{0, 1}, IndexRange{7, 8}));
  EXPECT_THAT(*found.at("w"),
              ElementsAre(one(3), IndexRange{0, 2}, IndexRange{0, 2}, IndexRange{0, 2}));
  EXPECT_THAT(*found.at("b"), ElementsAre(one(3)));
  auto pool = Net({{"x", {2, 3, 8, 8}}})
                  .node("y", "aten.avg_pool2d.default", {ref("x"), {2, 2}}, {2, 3, 4, 4})
                  .behind({1, 2, 0, 3});
  EXPECT_THAT(*pool.at("x"), ElementsAre(one(1), one(2), IndexRange{0, 1}, IndexRange{6, 7}));
  auto transposed =
      Net({{"x", {2, 3, 9, 9}}, {"w", {3, 4, 3, 3}}})
          .node("y", "aten.convolution.default",
                {ref("x"), ref("w"), nullptr, {1, 1}, {0, 0}, {1, 1}, true, {0, 0}, 1},
                {2, 4, 11, 11})
          .behind({1, 3, 0, 4});
  EXPECT_FALSE(transposed.at("x"));
}

TEST(Dependence, ViewsOfAxesAreFollowedAndReshapesAreNot) {
  auto found = Net({{"x", {4, 8, 6}}})
                   .node("p", "aten.permute.default", {ref("x"), {2, 0, 1}}, {6, 4, 8})
                   .node("s", "aten.slice.Tensor", {ref("p"), 2, 3, 8}, {6, 4, 5})
                   .node("t", "aten.select.int", {ref("s"), 0, 4}, {4, 5})
                   .node("u", "aten.unsqueeze.default", {ref("t"), 1}, {4, 1, 5})
                   .behind({2, 0, 4});
  EXPECT_THAT(*found.at("x"), ElementsAre(one(2), one(7), one(4)));
  auto reshaped = Net({{"x", {4, 8}}, {"y", {32}}})
                      .node("v", "aten.view.default", {ref("x"), {32}}, {32})
                      .node("a", "aten.add.Tensor", {ref("v"), ref("y")}, {32})
                      .behind({9});
  EXPECT_FALSE(reshaped.at("x"));
  EXPECT_THAT(*reshaped.at("y"), ElementsAre(one(9)));
}

// x is used twice: the region covers both uses. An unknown use makes the whole tensor unknown.
TEST(Dependence, SeveralUsesOfATensorAreJoined) {
  auto joined = Net({{"x", {4, 8}}})
                    .node("m", "aten.amax.default", {ref("x"), {1}, true}, {4, 1})
                    .node("d", "aten.sub.Tensor", {ref("x"), ref("m")}, {4, 8})
                    .behind({3, 6});
  EXPECT_THAT(*joined.at("x"), ElementsAre(one(3), IndexRange{0, 7}));
  auto unknown = Net({{"x", {4, 8}}})
                     .node("f", "aten.flip.default", {ref("x"), {1}}, {4, 8})
                     .node("d", "aten.sub.Tensor", {ref("x"), ref("f")}, {4, 8})
                     .behind({3, 6});
  EXPECT_FALSE(unknown.at("x"));
}

TEST(Dependence, OfAnUnknownOutputThereIsNone) {
  Net net({{"x", {4}}});
  net.node("r", "aten.relu.default", {ref("x")}, {4}).behind({1});
  EXPECT_THAT(elements_behind(net.task, net.task.shapes[0], "other", {1}), IsEmpty());
}

// A smaller test shape cuts the ranges; an index outside it gives no region.
TEST(Dependence, RangesLieInsideTheTensorOfTheShape) {
  Net net({{"x", {64, 128}}});
  net.node("s", "aten.sum.dim_IntList", {ref("x"), {1}}, {64});
  net.task.shapes[0].tensors["x"] = {3, 5};
  EXPECT_THAT(*net.behind({2}).at("x"), ElementsAre(one(2), IndexRange{0, 4}));
  EXPECT_FALSE(elements_behind(net.task, net.task.shapes[0], "out", {3}).at("x"));
}

}  // namespace
}  // namespace cutegen::eval
