// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/fused.h"

#include <gmock/gmock.h>

#include "recipes/emit/passes.h"
#include "recipes/nest/nest.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

Fused fused(const std::string& name) {
  auto result = fuse(golden_task(name));
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

std::string refusal(const std::string& name) {
  auto result = fuse(golden_task(name));
  return result ? "accepted" : result.error().message;
}

TEST(Fuse, ChainHasTheOutputsAxes) {
  Fused f = fused("relu");
  EXPECT_FALSE(f.reduces());
  ASSERT_EQ(f.axes.size(), 3u);
  EXPECT_EQ(f.axes[1].extent, "dim(x,1)");
  Nest nest = make_nest(f);
  ASSERT_EQ(nest.kept.size(), 1u);  // one flat loop
  EXPECT_EQ(nest.kept[0].extent, "dim(x,0)*dim(x,1)*dim(x,2)");
}

TEST(Fuse, BroadcastOperandDoesNotMove) {
  Fused f = fused("gelu_bias");
  Nest nest = make_nest(f);
  ASSERT_EQ(nest.kept.size(), 3u);
  const Operand* bias = nullptr;
  for (const Operand& operand : f.inputs)
    if (operand.tensor == "b") bias = &operand;
  ASSERT_TRUE(bias);
  EXPECT_EQ(stride(f, *bias, nest.kept[0]).move, Move::none);
  EXPECT_EQ(stride(f, *bias, nest.kept[1]).move, Move::next);
  EXPECT_EQ(stride(f, *bias, nest.kept[2]).move, Move::none);
}

TEST(Fuse, TransposedOperandMovesByItsStrides) {
  Fused f = fused("transposed");
  Nest nest = make_nest(f);
  EXPECT_EQ(stride(f, f.inputs[0], nest.kept[2]).expression, "stride(x,1)");
  EXPECT_EQ(stride(f, f.inputs[1], nest.kept[2]).move, Move::next);
}

TEST(Fuse, SoftmaxIsTwoReductionsDeep) {
  Fused f = fused("softmax_last");
  EXPECT_EQ(f.max_depth(), 2);
  EXPECT_TRUE(f.axes[2].reduced);
  EXPECT_TRUE(make_nest(f).reduced_inside);
  EXPECT_TRUE(find_joint(f));
  EXPECT_FALSE(make_nest(fused("softmax_first")).reduced_inside);
}

TEST(Fuse, SoftmaxByHandIsRecognised) {
  EXPECT_TRUE(find_joint(fused("softmax_by_hand")));
  EXPECT_FALSE(find_joint(fused("rms_middle")));
}

TEST(Fuse, MeanAndSquaresAboutItAreJoint) {
  for (const char* name : {"layer_norm", "group_norm", "instance_norm", "var"}) {
    auto joint = find_joint(fused(name));
    ASSERT_TRUE(joint) << name;
    EXPECT_TRUE(joint->moments) << name;
  }
  EXPECT_FALSE(find_joint(fused("softmax_last"))->moments);
}

// The first element is read before any pass: it may not depend on one.
TEST(Fuse, MomentsOfWhatAPassComputesAreNotJoint) {
  Fused f = fused("var");
  auto joint = find_joint(f);
  ASSERT_TRUE(joint);
  f.insts[size_t(f.insts[size_t(joint->first)].inputs[0])].depth = 1;
  EXPECT_FALSE(find_joint(f));
}

TEST(Fuse, MiddleAxisKeepsAnOuterAndAnInnerLoop) {
  Nest nest = make_nest(fused("rms_middle"));
  EXPECT_EQ(nest.kept.size(), 2u);
  ASSERT_EQ(nest.reduced.size(), 1u);
  EXPECT_EQ(nest.length(), 16);
  EXPECT_EQ(nest.rows(), 8 * 12);
}

TEST(Fuse, ReshapedTensorGivesTheMissingExtent) {
  Fused f = fused("flat_sum");
  ASSERT_EQ(f.axes.size(), 2u);
  EXPECT_EQ(f.axes[1].size, 16 * 12);
  EXPECT_EQ(f.axes[1].extent, "dim(x,1)*dim(x,2)");
}

TEST(VectorWidths, DivideTheInnermostLoopAndFitSixteenBytes) {
  EXPECT_EQ(vector_widths(fused("relu"), 4096), (std::vector<int64_t>{4, 2, 1}));
  EXPECT_EQ(vector_widths(fused("relu"), 4095), (std::vector<int64_t>{1}));
  EXPECT_EQ(vector_widths(fused("in_place"), 6), (std::vector<int64_t>{2, 1}));
}

TEST(Fuse, NamesTheOperatorThatNoRecipeCovers) {
  EXPECT_EQ(refusal("no_matmul"), "no recipe fuses aten.bmm.default here");
  EXPECT_EQ(refusal("no_digamma"), "no recipe covers aten.digamma.default");
  EXPECT_THAT(refusal("two_axes"), HasSubstr("reduces other axes"));
}

TEST(Fuse, RefusesTasksThatWriteTheirInputs) {
  Task task = golden_task("relu");
  task.tensors[0].mutated = true;
  auto result = fuse(task);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("in place"));
}

TEST(Fuse, RefusesAnEmptyGraph) {
  Task task = golden_task("relu");
  task.graph = Graph{};
  EXPECT_FALSE(fuse(task));
}

}  // namespace
}  // namespace cutegen::recipes
