// SPDX-License-Identifier: Apache-2.0
// Mutated tensors: kernels write the new elements of a cache where an index or a slice says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

KernelProgram writing_program(const std::string& name) {
  const Task task = golden_task(name);
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto made = instantiate(task, match, match.safe);
  EXPECT_TRUE(made) << name << ": " << match.why;
  if (!made) return {};
  for (const Error& error : check_plan(made->plan, task)) ADD_FAILURE() << error.text();
  return *made;
}

TEST(Writes, AnIndexSaysWhereRowsGo) {
  const KernelProgram program = writing_program("cache_rows");
  ASSERT_EQ(program.sources.size(), 1U);
  const std::string& source = program.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("float* __restrict__ cache_1"));
  EXPECT_THAT(source,
              HasSubstr("cutegen::store_at(r_cache_1, g_cache_1(_, place(j)), to_cache_1[i]);"));
}

TEST(Writes, ASliceCountsFromTheEnd) {
  const Json plan = to_json(writing_program("cache_slice").plan);
  EXPECT_THAT(plan.at("steps")[0].at("args").dump(),
              HasSubstr("(dim(cache_1,1)-4)*(stride(cache_1,1))"));
}

// A reduced value is computed first; a second kernel writes it where the index says.
TEST(Writes, AReducedValueIsKeptFirst) {
  EXPECT_EQ(to_json(writing_program("cache_norm").plan).at("steps").size(), 2U);
}

// The product's kernel would write the whole tensor.
TEST(Writes, AProductIsKeptFirst) {
  const Json plan = to_json(writing_program("cache_product").plan);
  ASSERT_EQ(plan.at("steps").size(), 2U);
  EXPECT_EQ(plan.at("steps")[1].at("kernel"), "elementwise_2");
}

TEST(Writes, ReadingTheChangedTensorIsNotCovered) {
  const RecipeMatch match = match_recipe(golden_task("cache_read_after"), "sm_90a");
  EXPECT_EQ(match.recipe, "");
  EXPECT_EQ(match.why, "forward() mutates 'cache' in place in a way that no recipe covers");
}

}  // namespace
}  // namespace cutegen::recipes
