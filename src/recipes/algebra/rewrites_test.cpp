// SPDX-License-Identifier: Apache-2.0
#include "recipes/algebra/rewrites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "recipes/emit/recipes.h"
#include "recipes/graph/pointwise.h"
#include "recipes/testing/test_tasks.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> rules_of(const Rewritten& rewritten) {
  std::vector<std::string> rules;
  for (const Rewrite& rewrite : rewritten.applied) rules.push_back(rewrite.rule);
  return rules;
}

Rewritten all_of(const std::string& task) {
  return rewrite(golden_task(task), all_rewrites());
}

auto operators(const Graph& graph, const std::string& base) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return base_name(node.op) == base; });
}

// The rewritten graph must have a recipe, with a program for its first choice.
void expect_program(const Rewritten& rewritten) {
  for (std::string_view arch : {std::string_view(), kHopperArch}) {
    const RecipeMatch match = match_recipe(rewritten.task, arch);
    ASSERT_FALSE(match.recipe.empty()) << match.why;
    const auto program = instantiate(rewritten.task, match, match.safe);
    EXPECT_TRUE(program) << program.error().text();
  }
}

TEST(Rewrites, ASumOverAProductBecomesAProductWithAVector) {
  const Rewritten r = all_of("algebra_linear_sum");
  EXPECT_THAT(rules_of(r), ElementsAre("one-element", "sum-of-product"));
  EXPECT_EQ(operators(r.task.graph, "addmm"), 0);
  EXPECT_EQ(operators(r.task.graph, "max") + operators(r.task.graph, "logsumexp"), 0);
  EXPECT_THAT(r.applied[1].effect, HasSubstr("the sum over 40 results"));
  expect_program(r);
}

TEST(Rewrites, AMeanPassesViewsAndTerms) {
  const Rewritten r = all_of("algebra_linear_mean_3d");
  EXPECT_THAT(rules_of(r), ElementsAre("sum-of-product"));
  EXPECT_EQ(operators(r.task.graph, "addmm"), 0);
  expect_program(r);
}

TEST(Rewrites, ASumOverTheRowsSumsTheFirstFactor) {
  const Rewritten r = all_of("algebra_mm_rows");
  EXPECT_THAT(rules_of(r), ElementsAre("sum-of-product"));
  EXPECT_EQ(operators(r.task.graph, "mm"), 0);
  expect_program(r);
}

TEST(Rewrites, WhatIsNotLinearStays) {
  for (const char* name : {"algebra_relu_sum", "algebra_read_twice", "algebra_conv_max",
                           "algebra_conv_stride", "mm_softmax_after", "conv_channel_sum_grouped"})
    EXPECT_THAT(rules_of(all_of(name)), IsEmpty()) << name;
}

TEST(Rewrites, FactorsThatMayPreventAnOverflowStay) {
  Task task = golden_task("algebra_linear_sum");
  for (Node& node : task.graph.nodes)
    if (base_name(node.op) == "div") node.args[1] = 1e30;
  EXPECT_THAT(rules_of(rewrite(task, all_rewrites())), ElementsAre("one-element"));
}

TEST(Rewrites, AnAxisThatIsLongerAtAnotherShapeIsNotOneElement) {
  Task task = golden_task("algebra_linear_sum");
  for (Node& node : task.graph.nodes)
    if (base_name(node.op) == "sum") node.args[2] = false;
  for (Node& node : task.graph.nodes)
    if (base_name(node.op) == "max") node.args[0] = {{"ref", "x"}};
  EXPECT_EQ(operators(rewrite(task, all_rewrites()).task.graph, "max"), 1);
}

TEST(Rewrites, AMeanOverAConvolutionBecomesMeansTimesSummedWeights) {
  const Rewritten r = all_of("algebra_conv_mean");
  EXPECT_THAT(rules_of(r), ElementsAre("one-element", "mean-of-convolution"));
  EXPECT_EQ(operators(r.task.graph, "convolution"), 0);
  EXPECT_THAT(r.requirements, ElementsAre("dim(conv_weight,2) == 3", "dim(conv_weight,3) == 3"));
  expect_program(r);
}

TEST(Rewrites, AConstantResultNeedsNoInput) {
  const Rewritten r = all_of("algebra_constant");
  EXPECT_THAT(rules_of(r), ElementsAre("one-element", "constant-result"));
  EXPECT_EQ(r.task.graph.nodes.size(), 1);
  EXPECT_THAT(r.applied[1].effect, HasSubstr("is 0 whatever the inputs are"));
  expect_program(r);
}

TEST(Rewrites, ClampsAndFactorsMerge) {
  const Rewritten r = all_of("algebra_clamps");
  EXPECT_THAT(rules_of(r), ElementsAre("merge-clamps", "fold-scales"));
  EXPECT_EQ(r.task.graph.nodes.size(), 2);
  EXPECT_EQ(r.task.graph.nodes[0].args[1], 0.5);
  EXPECT_EQ(r.task.graph.nodes[1].args[1], 0.25);
  EXPECT_EQ(r.task.graph.nodes[1].args[2], 3.0);
  expect_program(r);
}

TEST(Rewrites, ClampsWithLimitsOutOfOrderStay) {
  Task task = golden_task("algebra_clamps");
  for (Node& node : task.graph.nodes)
    if (base_name(node.op) == "clamp") node.args[2] = -7;
  EXPECT_THAT(rules_of(rewrite(task, all_rewrites())), ElementsAre("fold-scales"));
}

TEST(Rewrites, OnlyChosenRulesApply) {
  const Task task = golden_task("algebra_linear_sum");
  const auto chosen = parse_rewrites("one-element", "--rewrites");
  ASSERT_TRUE(chosen);
  EXPECT_THAT(rules_of(rewrite(task, *chosen)), ElementsAre("one-element"));
  EXPECT_THAT(rules_of(rewrite(task, {})), IsEmpty());
  const auto found = find_rewrites(task, *chosen);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].applied);
  EXPECT_FALSE(found[1].applied);
  EXPECT_EQ(found[1].rule, "sum-of-product");
}

TEST(Rewrites, UnknownNamesAreErrorsThatListTheRules) {
  const auto chosen = parse_rewrites("sum-of-products", "--rewrites");
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().text(), HasSubstr("did you mean 'sum-of-product'?"));
  EXPECT_THAT(*parse_rewrites("none", "--rewrites"), IsEmpty());
  EXPECT_EQ(*parse_rewrites("all", "--rewrites"), all_rewrites());
  for (RewriteRule rule : all_rewrites()) EXPECT_FALSE(meaning_of(rule).empty());
}

}  // namespace
}  // namespace cutegen::recipes
