// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/stages.h"

#include <gmock/gmock.h>

#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

Stages golden_stages(const std::string& name) {
  auto result = make_stages(golden_task(name));
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

Contraction contraction(const std::string& name) {
  return std::get<Contraction>(golden_stages(name).list.at(0));
}

bool reduces(const std::string& name) {
  return std::get<Fused>(golden_stages(name).list.at(0)).reduces();
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
  EXPECT_THAT(c.extent(c.m), HasSubstr("(a"));  // from sizes of a, whose axes are merged
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
  EXPECT_FALSE(c.zero_outside);                // where() masks sigmoid(product), not the product
}

TEST(Contraction, TriangleOfTheProductSkipsTiles) {
  Contraction c = contraction("mm_upper");
  ASSERT_TRUE(c.zero_outside);
  EXPECT_TRUE(c.zero_outside->upper);
  EXPECT_EQ(c.zero_outside->diagonal, 1);
}

TEST(Products, WithADiagonalArePointwise) {
  EXPECT_FALSE(reduces("mm_diagonal"));
}

TEST(Products, WithAVectorAreReductions) {
  for (const char* name : {"mm_vector", "mm_row"}) EXPECT_TRUE(reduces(name)) << name;
}

TEST(Products, WithAVectorAtTheOfficialSizeOnlyStayProducts) {
  Task task = golden_task("mm_row");
  task.shapes.push_back(task.shapes.front());
  task.shapes.back().tensors["a"] = {3, 24};
  auto result = make_stages(task);
  ASSERT_TRUE(result);
  EXPECT_TRUE(std::holds_alternative<Contraction>(result->list[0]));
}

// The first keeps its result; the second reads it as a factor.
TEST(Products, FollowOneAnother) {
  Stages s = golden_stages("mm_two_products");
  ASSERT_EQ(s.list.size(), 2u);
  ASSERT_EQ(s.scratch.size(), 1u);
  const auto& second = std::get<Contraction>(s.list[1]);
  EXPECT_TRUE(second.a.operand.kept || second.b.operand.kept);
}

TEST(Products, ReadComputedFactorsFromScratch) {
  Stages s = golden_stages("mm_computed_factor");
  ASSERT_EQ(s.list.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Fused>(s.list[0]));
  EXPECT_TRUE(std::holds_alternative<Contraction>(s.list[1]));
}

TEST(Products, KeepWhatAReductionReads) {
  Stages s = golden_stages("mm_softmax_after");
  ASSERT_EQ(s.list.size(), 2u);
  const auto& product = std::get<Contraction>(s.list[0]);
  EXPECT_TRUE(product.finish.outputs[0].operand.kept);
  EXPECT_EQ(s.scratch[0].extents.size(), 2u);
  EXPECT_EQ(s.scratch[0].extents[1], product.extent(product.n));
  EXPECT_TRUE(std::get<Fused>(s.list[1]).reduces());
}

// result + result.T: both walks read scratch.
TEST(Products, UsedAlongSeveralAxesAreKept) {
  Stages s = golden_stages("mm_repeated_product");
  ASSERT_EQ(s.list.size(), 2u);
  EXPECT_FALSE(std::get<Fused>(s.list[1]).reduces());
}

TEST(Products, NameWhatNoRecipeCovers) {
  auto result = make_stages(golden_task("no_matmul_then_digamma"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "no recipe covers aten.digamma.default");
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
