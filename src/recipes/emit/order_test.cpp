// SPDX-License-Identifier: Apache-2.0
// Elements of rows in order: topk selects a few one by one, sort orders a row in shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/graph/pointwise.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Order, TopKKeepsValuesAndPositions) {
  const Task task = golden_task("top_k");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  EXPECT_EQ(match.recipe, "order");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  for (const Error& error : check_plan(program->plan, task)) ADD_FAILURE() << error.text();
  const Json plan = to_json(program->plan);
  EXPECT_EQ(plan.at("scratch").size(), 2U);
  EXPECT_THAT(plan.at("requires"), Contains("r0_1 >= dim(out_0,1)"));
  EXPECT_EQ(match.safe.at("width"), 32);  // a warp takes a row of 64 elements
}

// The threads' own first elements give a threshold, and the CTA sorts only elements that are not
// behind it.
TEST(Order, ALongRowBoundsWhatItSorts) {
  const Task task = golden_task("top_k_long");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("const cutegen::Key last = keys[wanted - 1];"));
  EXPECT_EQ(match.safe.at("width"), match.safe.at("threads"));
  // The positions of 64 bits are single stores, so they do not limit the width of a load.
  EXPECT_EQ(match.safe.at("vector"), 8);
}

// The CTAs of each step already wait on the SMs for the results of the previous step.
TEST(Order, StepsOfOneProgramAreChained) {
  const Task task = golden_task("top_k_long");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(to_json(program->plan).at("steps")[1].at("pdl"), true);
  EXPECT_THAT(program->sources.at("kernel_1.cu"),
              HasSubstr(") {\n  cutegen::allow_next_step();\n"));
  EXPECT_THAT(program->sources.at("kernel_2.cu"),
              HasSubstr(") {\n  cutegen::await_previous_step();\n"));
  EXPECT_THAT(program->sources.at("kernel_2.cu"), HasSubstr("#include <cutegen/steps.cuh>\n"));
}

TEST(Order, ARowThatFitsACtaIsSorted) {
  const Task task = golden_task("sort_rows");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("cutegen::sort_keys(keys, padded);"));
  EXPECT_THAT(source, HasSubstr("constexpr bool kLargest = true;"));
  EXPECT_THAT(to_json(program->plan).at("requires"), Contains("r0_1 <= 4096"));
}

// More than 64 elements are selected by a threshold, not one by one, so a CTA has at least as many
// threads.
TEST(Order, ALongRowSelectsUpTo256) {
  Task task = golden_task("top_k_long");
  const auto select = [&](int64_t count) {
    for (Node& node : task.graph.nodes)
      if (base_name(node.op) == "topk") node.args[1] = count;
    return match_recipe(task, "sm_90a");
  };
  const RecipeMatch match = select(256);
  EXPECT_EQ(match.recipe, "order");
  for (const Json& near : neighbours(match, match.safe)) {
    EXPECT_GE(near.at("threads").get<int64_t>(), 256);
    EXPECT_EQ(near.at("threads"), near.at("width"));
  }
  // The kernel sorts the row, because no threshold bounds so many elements.
  const RecipeMatch sorted = select(257);
  EXPECT_EQ(sorted.recipe, "order");
  EXPECT_EQ(sorted.safe.at("threads"), 1024);
}

TEST(Order, SaysWhatItDoesNotCover) {
  EXPECT_EQ(match_recipe(golden_task("top_k_first")).recipe, "order");
  Task task = golden_task("sort_rows");
  for (Value& value : task.graph.placeholders) value.shape = {16, 1 << 25};
  EXPECT_THAT(match_recipe(task).why, HasSubstr("rows of more than 16777216 elements"));
}

}  // namespace
}  // namespace cutegen::recipes
