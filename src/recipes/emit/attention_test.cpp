// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The node that replaces a golden task's attention, if one does.
std::optional<Node> node_of(Graph graph) {
  graph = fuse_attention(std::move(graph));
  auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), is_attention);
  if (found == graph.nodes.end()) return std::nullopt;
  return *found;
}

AttentionNode attention_of(const std::string& name) {
  auto node = node_of(golden_task(name).graph);
  EXPECT_TRUE(node) << name;
  return node ? read_attention(*node) : AttentionNode{};
}

struct Fused16 {
  Task task;
  RecipeMatch match;
  explicit Fused16(const std::string& name)
      : task(golden_task(name)), match(match_recipe(task, kHopperArch)) {
    EXPECT_EQ(match.recipe, "attention") << match.why;
  }
  Json plan(const Json& changes = Json::object()) const {
    auto made = program(changes);
    EXPECT_TRUE(made) << made.error().text();
    return made ? to_json(made->plan) : Json();
  }
  Result<KernelProgram> program(const Json& changes = Json::object()) const {
    Json params = match.safe;
    params.update(changes);
    return instantiate(task, match, params);
  }
};

TEST(FuseAttention, ACausalMaskIsStructure) {
  const AttentionNode a = attention_of("attention_causal");
  EXPECT_EQ(a.q, "q");
  EXPECT_EQ(a.k, "k");
  EXPECT_EQ(a.v, "v");
  EXPECT_TRUE(a.causal && a.safe && a.heads && !a.grouped && !a.turned);
  EXPECT_EQ(a.diagonal, 0);
  EXPECT_EQ(a.mask, "");
  EXPECT_NEAR(a.scale, 0.125, 1e-12);
  EXPECT_THAT(a.order, ElementsAre(0, 1, 2, 3));
}

TEST(FuseAttention, ATriangleOfOneRowIsAMaskLikeAnyOther) {
  const AttentionNode a = attention_of("attention_one_row");
  EXPECT_FALSE(a.causal);
  EXPECT_NE(a.mask, "");
}

TEST(FuseAttention, ADiagonalBeyond32BitsIsAMaskLikeAnyOther) {
  const AttentionNode a = attention_of("attention_far_diagonal");
  EXPECT_FALSE(a.causal);
  EXPECT_NE(a.mask, "");
}

TEST(FuseAttention, GroupedQueriesReadKeysWhereTheyLie) {
  const AttentionNode a = attention_of("attention_grouped");
  EXPECT_TRUE(a.grouped && !a.causal);
  EXPECT_EQ(a.k, "k");
}

TEST(FuseAttention, TheResultMayBeTransposedAndMerged) {
  EXPECT_THAT(attention_of("attention_lines").order, ElementsAre(0, 2, 1, 3));
}

TEST(FuseAttention, FactorsMayBeSlicesOfOneTensor) {
  const AttentionNode a = attention_of("attention_packed");
  EXPECT_EQ(a.q, a.k);
  EXPECT_EQ(a.slice_q.axis, 0);
  EXPECT_EQ(a.slice_q.index, 0);
  EXPECT_EQ(a.slice_v.index, 2);
  const Json plan = Fused16("attention_packed").plan();
  ASSERT_EQ(plan.at("steps").size(), 1u);
  for (const char* map : {"map_q", "map_k", "map_v"})
    EXPECT_EQ(plan.at("tensor_maps").at(map).at("tensor"), "x");
  EXPECT_THAT(plan.at("tensor_maps").at("map_v").at("dims")[4].get<std::string>(), HasSubstr("3"));
}

TEST(FuseAttention, AWrittenOutSoftmaxGivesNanToRowsWithoutKeys) {
  const AttentionNode a = attention_of("attention_by_hand");
  EXPECT_FALSE(a.safe || a.hides);
  EXPECT_EQ(a.mask, "bias");
  EXPECT_NEAR(a.scale, 0.125, 1e-12);
}

TEST(FuseAttention, Float32StaysTwoProducts) {
  EXPECT_FALSE(node_of(golden_task("attention_mask").graph));
}

TEST(FuseAttention, WeightsThatSomethingElseNeedsAreKept) {
  Graph graph = golden_task("attention_by_hand").graph;
  for (const Node& node : graph.nodes)
    if (node.op == "aten._softmax.default") graph.outputs.push_back(node.outputs.front().name);
  EXPECT_FALSE(node_of(graph));
}

TEST(FuseAttention, ANegativeScaleIsRefused) {
  Graph graph = golden_task("attention_by_hand").graph;
  for (Node& node : graph.nodes)
    if (node.op == "aten.mul.Tensor") node.args[1] = -0.125;
  EXPECT_FALSE(node_of(graph));
}

TEST(FuseAttention, AScaleAfterTheMaskIsRefused) {
  Graph graph = golden_task("attention_by_hand").graph;
  Node scaled;
  for (Node& node : graph.nodes) {
    if (node.op != "aten._softmax.default") continue;
    scaled = node;
    scaled.id = "late", scaled.op = "aten.mul.Tensor", scaled.outputs.front().name = "late";
    scaled.args = {node.args[0], 2.0};
    node.args[0] = {{"ref", "late"}};
  }
  graph.nodes.push_back(scaled);
  EXPECT_FALSE(node_of(graph));
}

TEST(AttentionRecipe, OneKernelReadsThroughTensorMaps) {
  const Fused16 c("attention_causal");
  const Json plan = c.plan();
  ASSERT_EQ(plan.at("steps").size(), 1u);
  EXPECT_EQ(plan.at("arch"), Json::array({"sm_90a"}));
  EXPECT_EQ(plan.at("tensor_maps").size(), 3u);
  EXPECT_FALSE(plan.contains("scratch"));
  EXPECT_EQ(plan.at("steps")[0].at("block")[0], 256);
}

TEST(AttentionRecipe, TilesFitTheNumberOfKeys) {
  const Json few = Fused16("attention_causal").match.safe;  // 96 keys
  EXPECT_EQ(few.at("keys"), 96);
  EXPECT_EQ(few.at("consumers"), 1);  // so that an SM holds two CTAs
}

TEST(AttentionRecipe, HeadsFormSectionsOfTheSameSizeThatFitTheL2) {
  const Json plan = Fused16("attention_causal").plan();
  EXPECT_EQ(plan.at("symbols").at("section"),
            "ceil_div(max(1,heads*batches),ceil_div(max(1,heads*batches),cached))");
}

// 2 * 24 KiB of queries and 2 * 32 KiB of keys and values.
TEST(AttentionRecipe, SharedMemoryHoldsTheNextQueriesIfTheyFit) {
  const Fused16 c("attention_causal");
  const Json plan = c.plan({{"consumers", 3}});
  const std::string bytes = plan.at("steps")[0].at("shared_bytes");
  EXPECT_THAT(bytes, HasSubstr("ceil_div(49152*ceil_div(head_dim,64)+"));
  EXPECT_THAT(bytes, HasSubstr(" <= 232448 ? "));
}

TEST(AttentionRecipe, EveryParameterGivesASoundPlan) {
  for (const char* name :
       {"attention_causal", "attention_grouped", "attention_lines", "attention_by_hand"}) {
    const Fused16 c(name);
    const auto near = neighbours(c.match, c.match.safe);
    EXPECT_GE(near.size(), 4u) << name;
    for (const Json& params : near) {
      auto program = c.program(params);
      ASSERT_TRUE(program) << program.error().text();
      for (const auto& [file, source] : program->sources)
        EXPECT_THAT(source, Not(HasSubstr("{{"))) << name;
      for (const Error& error : check_plan(program->plan, c.task)) ADD_FAILURE() << error.text();
    }
  }
}

TEST(AttentionRecipe, OneQueryStacksTheHeadsThatShareKeys) {
  const Json plan = Fused16("attention_grouped").plan();
  EXPECT_THAT(plan.at("symbols").at("rows").get<std::string>(), HasSubstr("dim(q,1)"));
  EXPECT_EQ(plan.at("symbols").at("shared_by"), 1);
  EXPECT_EQ(plan.at("steps")[0].at("block")[0], 256);
}

TEST(AttentionRecipe, ALongCacheIsReadInParts) {
  EXPECT_EQ(Fused16("attention_decode").match.safe.at("split"), 8);
  EXPECT_EQ(Fused16("attention_grouped").match.safe.at("split"), 2);
}

TEST(AttentionRecipe, SplitKeysAreCombinedInAKernelOfTheirOwn) {
  const Fused16 c("attention_grouped");
  const Json plan = c.plan({{"split", 2}});
  ASSERT_EQ(plan.at("steps").size(), 2u);
  EXPECT_EQ(plan.at("steps")[1].at("kernel"), "combine");
  EXPECT_EQ(plan.at("scratch").size(), 2u);
}

TEST(AttentionRecipe, ParametersThatNeedMoreRegistersAreRefused) {
  auto refused = Fused16("attention_causal").program({{"keys", 256}, {"consumers", 3}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::user);
}

TEST(AttentionRecipe, OtherGpusComputeProductsAndASoftmax) {
  EXPECT_EQ(match_recipe(golden_task("attention_causal"), "sm_80").recipe, "matmul");
}

}  // namespace
}  // namespace cutegen::recipes
