// SPDX-License-Identifier: Apache-2.0
// Mutated tensors whose new values depend on the old ones.
#include "recipes/emit/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelProgram program_of(const Task& task) {
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto made = instantiate(task, match, match.safe);
  EXPECT_TRUE(made) << task.name << ": " << match.why;
  if (!made) return {};
  for (const Error& error : check_plan(made->plan, task)) ADD_FAILURE() << error.text();
  return *made;
}

std::vector<std::string> kernels_of(const KernelProgram& program) {
  std::vector<std::string> names;
  const Json plan = to_json(program.plan);
  for (const Json& step : plan.at("steps")) names.push_back(step.at("kernel"));
  return names;
}

// The compiler must not move a load beyond the store to the same tensor.
TEST(InPlace, OneKernelReadsAndWritesARow) {
  const KernelProgram program = program_of(golden_task("replaced_norm"));
  EXPECT_EQ(kernels_of(program), std::vector<std::string>{"reduction"});
  const std::string& source = program.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("(bfloat16_t* residual, bfloat16_t* x, "));
  EXPECT_THAT(source, HasSubstr("bfloat16_t const* __restrict__ weight"));
}

TEST(InPlace, OtherElementsAreReadBeforeACopyOverwritesThem) {
  const KernelProgram program = program_of(golden_task("replaced_transpose"));
  EXPECT_EQ(kernels_of(program).size(), 2U);
  const Json plan = to_json(program.plan);
  ASSERT_EQ(plan.at("scratch").size(), 1U);
  EXPECT_EQ(plan.at("scratch")[0].at("name"), "x_new");
  EXPECT_THAT(plan.at("steps")[0].at("args").dump(), HasSubstr("x_new"));
  EXPECT_THAT(plan.at("steps")[1].at("args").dump(), HasSubstr("x_new"));
}

// In a kernel over columns, threads beyond the last column read the first one.
TEST(InPlace, AKernelOverColumnsDoesNotOverwriteThem) {
  EXPECT_EQ(kernels_of(program_of(golden_task("replaced_columns"))).size(), 2U);
}

TEST(InPlace, TheGraphSaysWhichValueATensorHolds) {
  Task task = golden_task("replaced_norm");
  task.graph.finals.clear();
  const RecipeMatch match = match_recipe(task, "sm_90a");
  EXPECT_EQ(match.recipe, "");
  EXPECT_THAT(match.why, HasSubstr("in place in a way that no recipe covers"));
}

// x[..., :half] is half of x at every size, so the program needs no official size.
TEST(Slices, BoundsThatFollowTheAxisAreParts) {
  Task task = golden_task("slice_shares");
  const auto requires_of = [&] { return to_json(program_of(task).plan).at("requires").dump(); };
  EXPECT_THAT(requires_of(), HasSubstr("(dim(q,3)) % 2 == 0"));
  EXPECT_THAT(requires_of(), Not(HasSubstr("dim(q,3) == 16")));
  // A bound that is a number may be the end of the axis at one size only.
  for (Node& node : task.graph.nodes)
    if (node.id == "slice") node.args[3] = 16;
  EXPECT_THAT(requires_of(), HasSubstr("dim(q,3) == 16"));
  for (Node& node : task.graph.nodes) node.sizes.clear();
  EXPECT_THAT(requires_of(), HasSubstr("dim(q,3) == 16"));
}

}  // namespace
}  // namespace cutegen::recipes
