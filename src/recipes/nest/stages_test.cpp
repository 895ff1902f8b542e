// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/stages.h"

#include <gmock/gmock.h>

#include "recipes/fuse/extents.h"
#include "recipes/nest/nest.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

Stages stages(const std::string& name) {
  auto result = make_stages(golden_task(name));
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

Fused nest(const Stages& stages, size_t i) {
  return std::get<Fused>(stages.list.at(i));
}

std::string stages_refusal(const std::string& name) {
  auto result = make_stages(golden_task(name));
  return result ? "accepted" : result.error().message;
}

TEST(Stages, OneWhereTheGraphFitsIntoOneNest) {
  for (const char* name : {"relu", "layer_norm", "group_norm", "instance_norm", "batch_norm", "mse",
                           "hinge", "frobenius", "max_with_index", "sum_two_axes", "kl_div"}) {
    Stages s = stages(name);
    EXPECT_EQ(s.list.size(), 1u) << name;
    EXPECT_TRUE(s.scratch.empty()) << name;
  }
}

TEST(Stages, KeepOneNumberARowBetweenReductionsOverDifferentAxes) {
  for (const char* name : {"cross_entropy", "triplet", "cosine"}) {
    Stages s = stages(name);
    ASSERT_EQ(s.list.size(), 2u) << name;
    ASSERT_EQ(s.scratch.size(), 1u) << name;
    EXPECT_EQ(s.scratch[0].extents.size(), 1u) << name;
    EXPECT_EQ(make_nest(nest(s, 1)).length(), 16) << name;
  }
}

TEST(Stages, AttentionIsTwoProductsAndTheSoftmaxBetweenThem) {
  for (const char* name : {"attention_causal", "attention_mask"}) {
    Stages s = stages(name);
    ASSERT_EQ(s.list.size(), 3u) << name;
    // The factors are the task's tensors, although the reference scales them.
    const auto& scores = std::get<Contraction>(s.list[0]);
    EXPECT_EQ(scores.a.operand.tensor, "q") << name;
    EXPECT_EQ(scores.b.operand.tensor, "k") << name;
    EXPECT_TRUE(nest(s, 1).reduces()) << name;
    EXPECT_EQ(std::get<Contraction>(s.list[2]).b.operand.tensor, "v") << name;
    EXPECT_EQ(s.scratch[0].extents[0], "dim(q,0)") << name;
    EXPECT_EQ(s.scratch[0].extents[1], "dim(q,1)") << name;
  }
}

TEST(Stages, SmallValuesAreKeptAndLargeOnesComputedAgain) {
  Stages s = stages("softmax_then_sum");  // softmax is one operator: its result is kept
  ASSERT_EQ(s.scratch.size(), 1u);
  EXPECT_EQ(s.scratch[0].extents, (std::vector<std::string>{"dim(x,0)", "dim(x,1)"}));
  EXPECT_EQ(stages("two_axes").scratch.size(), 1u);
}

TEST(Stages, PointwiseWorkFollowsTheAxesBeforeAReshape) {
  Stages s = stages("merged_views");
  ASSERT_EQ(s.list.size(), 1u);
  Fused f = nest(s, 0);
  ASSERT_EQ(f.axes.size(), 3u);
  EXPECT_EQ(f.axes[1].extent, "dim(x,2)");
  EXPECT_EQ(f.axes[2].extent, "dim(x,1)");
  EXPECT_TRUE(f.outputs[0].operand.reshaped);
}

// [6, 10] is reduced to [6, 1], which broadcasts to [1, 8, 6, 1]: no axis of the result is the
// row's.
TEST(Stages, KeepAReductionIfTheOutputHasOtherAxes) {
  Stages s = stages("lowest_plus_bias");
  ASSERT_EQ(s.list.size(), 2u);
  EXPECT_TRUE(nest(s, 0).reduces());
  EXPECT_FALSE(nest(s, 1).reduces());
  EXPECT_EQ(s.scratch[0].name, "amin");
}

TEST(Stages, GroupsOfANormAreAnAttributeOfTheModule) {
  Fused f = nest(stages("group_norm"), 0);
  ASSERT_EQ(f.axes.size(), 4u);
  EXPECT_EQ(f.axes[1].extent, "attr(gn.num_groups)");
  EXPECT_EQ(f.axes[2].extent, "(dim(x,1))/max(1,attr(gn.num_groups))");
  EXPECT_EQ(f.axes[3].extent, "dim(x,2)*dim(x,3)");
  EXPECT_TRUE(f.axes[2].reduced && f.axes[3].reduced);
  EXPECT_THAT(fixed_sizes(f), testing::Contains("(dim(x,1)) % max(1,attr(gn.num_groups)) == 0"));
  Task task = golden_task("group_norm");
  task.attributes.clear();
  auto without = make_stages(task);
  ASSERT_TRUE(without);
  EXPECT_EQ(nest(*without, 0).axes[1].extent, "4");
}

// The mean reads [N, groups, C / groups, pixels] as [N, C, H, W]: no tensor shows H and W.
TEST(Stages, ReducedAxesThatAReshapeHidesAreOne) {
  Stages s = stages("conv_norm_mean");
  Fused mean = nest(s, s.list.size() - 1);
  ASSERT_EQ(mean.axes.size(), 4u);
  EXPECT_EQ(mean.axes[2].size, 9 * 12);
  EXPECT_NE(mean.axes[2].extent, "");
  EXPECT_EQ(mean.axes[3].size, 1);
  EXPECT_EQ(mean.axes[3].extent, "1");
  EXPECT_EQ(make_nest(mean).length(), 12 * 9 * 12);
}

TEST(Stages, AKeptValueHasTheSizesOfATensorBehindTheSameReshape) {
  Stages s = stages("conv_norm_pool");
  ASSERT_EQ(s.list.size(), 3u);
  ASSERT_EQ(s.scratch.size(), 2u);
  EXPECT_EQ(s.scratch[1].extents, s.scratch[0].extents);
  EXPECT_TRUE(nest(s, 2).window);
}

// The group norm reads the softmax as [N, groups, C / groups, pixels], which hides H and W.
TEST(Stages, AKeptValueHasItsShapeBeforeAReshape) {
  Stages s = stages("conv_softmax_norm");
  ASSERT_EQ(s.scratch.size(), 2u);
  EXPECT_EQ(s.scratch[1].name, "softmax");
  EXPECT_EQ(s.scratch[1].extents.size(), 4u);
}

// The lengths along the channels are expanded, then read as [N, groups, C / groups, pixels].
TEST(Stages, AReshapeOfAnExpandedValueReadsTheValueItself) {
  Stages s = stages("conv_normalize_norm");
  ASSERT_EQ(s.list.size(), 3u);
  ASSERT_EQ(s.scratch.size(), 2u);
  EXPECT_EQ(s.scratch[1].extents.at(1), "1");
}

// The norm reads its input twice, and would compute gelu each time.
TEST(Stages, TheKernelOfAConvolutionDoesTheWorkBeforeANorm) {
  Task task = golden_task("conv_norm_mean");
  std::vector<Node>& nodes = task.graph.nodes;
  const auto norm = std::find_if(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op == "aten.native_group_norm.default";
  });
  Node gelu{.id = "gelu", .op = "aten.gelu.default", .args = {norm->args[0]}};
  gelu.outputs = {std::prev(norm)->outputs[0]};
  gelu.outputs[0].name = "gelu";
  norm->args[0] = {{"ref", "gelu"}};
  nodes.insert(norm, gelu);
  const auto s = make_stages(task);
  ASSERT_TRUE(s) << s.error().text();
  EXPECT_EQ(s->list.size(), stages("conv_norm_mean").list.size());
  EXPECT_EQ(s->scratch[0].name, "gelu");
  EXPECT_TRUE(nest(*s, 0).window);
  EXPECT_GT(nest(*s, 0).insts.size(), 1u);
}

TEST(Stages, InstanceNormReducesTheImageOfEachChannel) {
  Fused f = nest(stages("instance_norm"), 0);
  EXPECT_EQ(f.axes[1].extent, "dim(x,0)*dim(x,1)");
  EXPECT_EQ(make_nest(f).length(), 35);
  EXPECT_EQ(make_nest(f).rows(), 24);
}

TEST(Stages, EvaluatedBatchNormIsPointwise) {
  EXPECT_FALSE(nest(stages("batch_norm"), 0).reduces());
}

TEST(Stages, PositionsAreWholeNumbers) {
  Fused f = nest(stages("max_with_index"), 0);
  ASSERT_EQ(f.outputs.size(), 2u);
  EXPECT_FALSE(f.insts[size_t(f.outputs[0].inst)].integer);
  EXPECT_TRUE(f.insts[size_t(f.outputs[1].inst)].integer);
  EXPECT_EQ(f.outputs[1].operand.dtype, DType::i64);
}

TEST(Stages, TruthValuesAreDividedAsFloats) {
  Fused f = nest(stages("mean_of_mask"), 0);
  int numbers = 0;
  for (const Inst& inst : f.insts) numbers += inst.code == "float({0})";
  EXPECT_EQ(numbers, 2);
}

// One loop nest computes the sum of each row and the maximum of its softmax, another one the
// columns.
TEST(Stages, OutputsOfDifferentShapesEndInStagesOfTheirOwn) {
  auto result = make_stages(golden_task("outputs_apart"));
  ASSERT_TRUE(result) << result.error().message;
  std::vector<std::string> written;
  for (const Stage& stage : result->list)
    for (const FusedOutput& output : outputs_of(stage)) written.push_back(output.operand.tensor);
  EXPECT_THAT(written, testing::UnorderedElementsAre("out.0", "out.1", "out.2"));
  EXPECT_TRUE(result->scratch.empty());
}

TEST(Stages, OutputsOfOneShapeMayNeedStagesOfTheirOwn) {
  auto result = make_stages(golden_task("outputs_of_one_shape"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->list.size(), 2U);
}

TEST(Stages, CoverIntegersAndWeightsOfClasses) {
  EXPECT_TRUE(make_stages(golden_task("no_integers")));
  EXPECT_TRUE(make_stages(golden_task("no_weighted_nll")));
}

// Products of sizes join extents by "*".
TEST(Stages, TheSizeOfASliceIsOneFactor) {
  const Stages s = stages("product_of_slices");
  ASSERT_EQ(s.scratch.size(), 2U);
  EXPECT_THAT(s.scratch[0].extents, testing::ElementsAre("dim(x,0)", "((dim(x,1))-1)"));
  EXPECT_THAT(s.scratch[1].extents, testing::ElementsAre("((dim(y,0))-1)", "dim(y,1)"));
}

TEST(Stages, SayWhyTheyRefuse) {
  EXPECT_THAT(stages_refusal("no_training_norm"), HasSubstr("in place"));
}

TEST(Stages, RefuseLossesWithArgumentsThatAreNone) {
  Task task = golden_task("mse");
  task.graph.nodes[0].args[2] = "mean";
  auto result = make_stages(task);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "aten.mse_loss.default: its reduction is not a number");
}

TEST(Stages, RefuseGroupsThatDoNotDivideTheChannels) {
  Task task = golden_task("group_norm");
  task.graph.nodes[0].args[6] = 5;
  auto result = make_stages(task);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("whole groups"));
}

}  // namespace
}  // namespace cutegen::recipes
