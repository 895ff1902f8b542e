// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/contraction.h"

#include <gmock/gmock.h>

#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

Form form(const std::string& name) {
  auto result = find_form(golden_task(name));
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

Contraction contraction(const std::string& name) {
  return std::get<Contraction>(form(name));
}

std::string refusal(const std::string& name) {
  auto result = find_form(golden_task(name));
  return result ? "accepted" : result.error().message;
}

TEST(Contraction, PlainProductTakesSizesFromItsFactors) {
  Contraction c = contraction("mm_plain");
  EXPECT_EQ(c.extent(c.m), "dim(a,0)");
  EXPECT_EQ(c.extent(c.n), "dim(b,1)");
  EXPECT_EQ(c.extent(c.k), "dim(a,1)");
  EXPECT_EQ(c.batches(), 1);
  EXPECT_EQ(c.a.depth.move, Move::next);
  EXPECT_EQ(c.b.row.move, Move::next);
  EXPECT_EQ(c.b.depth.expression, "stride(b,0)");
}

TEST(Contraction, TransposedFactorsAreReadTheOtherWay) {
  Contraction c = contraction("mm_turned");
  EXPECT_EQ(c.a.row.move, Move::next);
  EXPECT_EQ(c.b.depth.move, Move::next);
}

TEST(Contraction, LinearIsAProductWithBias) {
  Contraction c = contraction("mm_bias_residual");
  EXPECT_EQ(c.op, "aten.mm.default");
  EXPECT_EQ(c.b.operand.tensor, "fc.weight");
  EXPECT_EQ(c.b.depth.move, Move::next);
  ASSERT_EQ(c.finish.inputs.size(), 3u);  // product, bias, residual
}

TEST(Contraction, BatchesThatAViewMergedAreWalkedApart) {
  Contraction c = contraction("mm_scores");
  ASSERT_EQ(c.batch_axes.size(), 2u);
  EXPECT_EQ(c.batches(), 6);
  EXPECT_EQ(c.b.depth.move, Move::next);  // k transposed: still along its last axis
}

TEST(Contraction, EinsumIsAProductOfViews) {
  Contraction c = contraction("mm_einsum");
  EXPECT_EQ(c.size(c.m), 24);
  EXPECT_THAT(c.extent(c.m), HasSubstr("(a"));  // what is left of a, whose axes are merged
  EXPECT_EQ(c.loops_m.size(), 1u);              // three axes that all operands walk alike
}

TEST(Contraction, LinearOnThreeAxesIsOneProduct) {
  Contraction c = contraction("mm_linear_3d");
  EXPECT_TRUE(c.batch_axes.empty());
  EXPECT_EQ(c.size(c.m), 24);
  EXPECT_EQ(c.size(c.n), 20);
  EXPECT_EQ(c.b.operand.tensor, "fc.weight");
  EXPECT_EQ(c.b.depth.move, Move::next);
  EXPECT_EQ(c.loops_m.size(), 1u);
  EXPECT_EQ(c.finish.inputs.size(), 2u);  // the product and the bias
}

TEST(Contraction, PermutedResultHasLoopsOfItsOwn) {
  Contraction c = contraction("mm_heads");
  ASSERT_EQ(c.loops_m.size(), 2u);
  ASSERT_EQ(c.loops_n.size(), 2u);
  EXPECT_EQ(c.loops_n[1].extent, "dim(out,3)");
}

TEST(Contraction, TransposedResultChangesTheFactorsPlaces) {
  Contraction c = contraction("mm_transposed_out");
  EXPECT_TRUE(c.turned);
  EXPECT_EQ(c.a.operand.tensor, "b");
  ASSERT_EQ(c.masks.size(), 1u);
  EXPECT_TRUE(c.masks.begin()->second.upper);  // the lower triangle, seen from the other side
  EXPECT_FALSE(c.zero_outside);                // of sigmoid(product): not of the product itself
}

TEST(Contraction, TriangleOfTheProductSkipsTiles) {
  Contraction c = contraction("mm_upper");
  ASSERT_TRUE(c.zero_outside);
  EXPECT_TRUE(c.zero_outside->upper);
  EXPECT_EQ(c.zero_outside->diagonal, 1);
}

TEST(Form, ProductWithADiagonalIsPointwise) {
  EXPECT_FALSE(std::get<Stages>(form("mm_diagonal")).list[0].reduces());
}

TEST(Form, ProductWithAVectorIsAReduction) {
  for (const char* name : {"mm_vector", "mm_row"})
    EXPECT_TRUE(std::get<Stages>(form(name)).list[0].reduces()) << name;
}

TEST(Form, VectorAtTheOfficialSizeOnlyStaysAProduct) {
  Task task = golden_task("mm_row");
  task.shapes.push_back(task.shapes.front());
  task.shapes.back().tensors["a"] = {3, 24};
  auto result = find_form(task);
  ASSERT_TRUE(result);
  EXPECT_TRUE(std::holds_alternative<Contraction>(*result));
}

TEST(Form, SaysWhatItCannotFuse) {
  EXPECT_THAT(refusal("no_two_products"), HasSubstr("two matrix products"));
  EXPECT_THAT(refusal("no_computed_factor"), HasSubstr("a factor of the product is computed"));
  EXPECT_THAT(refusal("no_softmax_after"), HasSubstr("a reduction follows the product"));
  EXPECT_THAT(refusal("no_repeated_product"), HasSubstr("used along several axes"));
  EXPECT_EQ(refusal("no_matmul_then_cumsum"), "no recipe covers aten.cumsum.default");
}

TEST(Products, AlphaAndBetaStay) {
  Lowered lowered = *lower_products(golden_task("mm_baddbmm").graph);
  ASSERT_EQ(lowered.graph.nodes.size(), 3u);
  EXPECT_EQ(lowered.graph.nodes[0].op, "aten.bmm.default");
  EXPECT_EQ(lowered.graph.nodes[1].args[1], 2.0);
  EXPECT_EQ(lowered.graph.nodes[2].kwargs.at("alpha"), 0.5);
  EXPECT_EQ(lowered.graph.nodes[2].outputs[0].name, "baddbmm");
}

TEST(Products, TrianglesBecomeMasks) {
  Lowered lowered = *lower_products(golden_task("mm_upper").graph);
  ASSERT_EQ(lowered.masks.size(), 1u);
  EXPECT_EQ(lowered.graph.nodes.back().op, "aten.where.self");
}

TEST(Products, RefuseOperandsThatAreNoTensors) {
  Graph graph = golden_task("mm_baddbmm").graph;
  graph.nodes[0].args[1] = 3;
  auto lowered = lower_products(graph);
  ASSERT_FALSE(lowered);
  EXPECT_THAT(lowered.error().message, HasSubstr("batch1 is not a tensor"));
}

}  // namespace
}  // namespace cutegen::recipes
