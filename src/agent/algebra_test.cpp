// SPDX-License-Identifier: Apache-2.0
// Tests which work algebra can remove from a graph, and which claims would be wrong.
#include "agent/algebra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json ref(const char* name) {
  return {{"ref", name}};
}

// A task with the input x and the parameters w and b.
class Graphs {
 public:
  Graphs() {
    task.tensors = {
        {.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {64, 32}},
        {.name = "w", .role = TensorRole::parameter, .dtype = DType::f32, .shape = {32, 48}},
        {.name = "b", .role = TensorRole::parameter, .dtype = DType::f32, .shape = {48}}};
    for (const TensorInfo& t : task.tensors)
      task.graph.placeholders.push_back({.name = t.name, .dtype = t.dtype, .shape = t.shape});
  }
  Graphs& node(const char* id, const char* op, std::vector<Json> args, Shape shape) {
    task.graph.nodes.push_back({.id = id,
                                .op = std::string("aten.") + op,
                                .args = std::move(args),
                                .kwargs = Json::object(),
                                .outputs = {{.name = id, .dtype = DType::f32, .shape = shape}}});
    return *this;
  }
  Graphs& product() { return node("mm", "mm.default", {ref("x"), ref("w")}, {64, 48}); }
  std::vector<std::string> found() const { return removable_work(task); }

  Task task;
};

TEST(Algebra, ASumOfAProductIsAProductWithSums) {
  auto columns = Graphs()
                     .product()
                     .node("div", "div.Tensor", {ref("mm"), 2}, {64, 48})
                     .node("sum", "sum.dim_IntList", {ref("div"), {1}, true}, {64, 1})
                     .found();
  EXPECT_THAT(columns, ElementsAre(AllOf(HasSubstr("sum of the columns of the product mm"),
                                         HasSubstr("matrix-vector"))));
  auto rows = Graphs().product().node("m", "mean.dim", {ref("mm"), {0}, false}, {48}).found();
  EXPECT_THAT(rows, ElementsAre(HasSubstr("mean of the rows of the product mm")));
}

TEST(Algebra, AFunctionOfAProductIsNoSum) {
  EXPECT_THAT(Graphs()
                  .product()
                  .node("relu", "relu.default", {ref("mm")}, {64, 48})
                  .node("sum", "sum.dim_IntList", {ref("relu"), {1}, true}, {64, 1})
                  .found(),
              IsEmpty());
  EXPECT_THAT(Graphs()
                  .product()
                  .node("mul", "mul.Tensor", {ref("mm"), ref("mm")}, {64, 48})
                  .node("sum", "sum.dim_IntList", {ref("mul"), {1}, true}, {64, 1})
                  .found(),
              IsEmpty());
  EXPECT_THAT(Graphs().product().node("max", "amax.default", {ref("mm"), {1}}, {64}).found(),
              IsEmpty());
}

TEST(Algebra, ReductionsOverOneElementDoNothing) {
  Graphs g;
  g.product()
      .node("max", "max.dim", {ref("mm"), 1, true}, {64, 1})
      .node("mean", "mean.dim", {ref("max"), {1}, true}, {64, 1})
      .node("sub", "sub.Tensor", {ref("max"), ref("mean")}, {64, 1});
  EXPECT_THAT(g.found(), ElementsAre(HasSubstr("mean (mean) runs over one element"),
                                     HasSubstr("sub subtracts a value from itself")));
  EXPECT_THAT(Graphs()
                  .product()
                  .node("mean", "mean.dim", {ref("x"), {1}, true}, {64, 1})
                  .node("sub", "sub.Tensor", {ref("x"), ref("mean")}, {64, 32})
                  .found(),
              IsEmpty());
}

TEST(Algebra, AMeanOverAllPositionsOfAConvolution) {
  auto with_axes = [](Json axes) {
    return Graphs()
        .node("conv", "convolution.default", {ref("x"), ref("w"), ref("b")}, {2, 8, 16, 16})
        .node("mean", "mean.dim", {ref("conv"), std::move(axes), true}, {2, 8, 1, 1})
        .found();
  };
  EXPECT_THAT(with_axes({2, 3}), ElementsAre(HasSubstr("of the convolution conv")));
  EXPECT_THAT(with_axes({-1, -2}), ElementsAre(HasSubstr("of the convolution conv")));
  EXPECT_THAT(with_axes({3}), IsEmpty());
  EXPECT_THAT(with_axes({1}), IsEmpty());
}

TEST(Algebra, TrianglesFixedNormsAndParametersAlone) {
  EXPECT_THAT(Graphs().product().node("triu", "triu.default", {ref("mm"), 0}, {64, 48}).found(),
              ElementsAre(HasSubstr("skip the tiles below the diagonal")));
  auto norm = [](bool training) {
    return Graphs()
        .product()
        .node("bn", "native_batch_norm.default",
              {ref("mm"), ref("b"), ref("b"), ref("b"), ref("b"), training, 0.1, 1e-5}, {64, 48})
        .found();
  };
  EXPECT_THAT(norm(false), ElementsAre(HasSubstr("`prepare` can fold")));
  EXPECT_THAT(norm(true), IsEmpty());
  Graphs g;
  g.node("t", "t.default", {ref("w")}, {48, 32}).node("exp", "exp.default", {ref("t")}, {48, 32});
  EXPECT_THAT(g.found(), ElementsAre(HasSubstr("exp depends on parameters alone")));
}

// Graphs come from users' modules, so odd arguments must do no harm.
TEST(Algebra, OddArgumentsGiveNothing) {
  for (const Json& odd :
       std::vector<Json>{nullptr, "x", 99, {{"ref", 5}}, {"a", -9}, Json::array()})
    EXPECT_NO_FATAL_FAILURE(Graphs()
                                .product()
                                .node("sum", "sum.dim_IntList", {ref("mm"), odd, odd}, {64, 1})
                                .node("s", "sub.Tensor", {odd, odd}, {})
                                .node("n", "native_batch_norm.default", {odd}, {})
                                .node("triu", "triu.default", {}, {})
                                .found());
}

}  // namespace
}  // namespace cutegen::agent
