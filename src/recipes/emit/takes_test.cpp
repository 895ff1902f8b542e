// SPDX-License-Identifier: Apache-2.0
// Gathers: kernels read the elements that index tensors name where they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelProgram taking_program(const std::string& name) {
  const Task task = golden_task(name);
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto made = instantiate(task, match, match.safe);
  EXPECT_TRUE(made) << name << ": " << match.why;
  return made ? *made : KernelProgram{};
}

std::string only_source(const std::string& name) {
  const KernelProgram program = taking_program(name);
  EXPECT_EQ(program.sources.size(), 1U) << name;
  return program.sources.begin()->second;
}

std::string refusal_of(const Task& task) {
  const RecipeMatch match = match_recipe(task, "sm_90a");
  EXPECT_EQ(match.recipe, "");
  return match.why;
}

// All elements of a vector have one index, so the kernel reads a whole vector of the row that it
// names.
TEST(Takes, AnEmbeddingIsOneKernelWithVectors) {
  const KernelProgram program = taking_program("take_rows");
  const std::string source = program.sources.begin()->second;
  EXPECT_EQ(program.sources.size(), 1U);
  EXPECT_THAT(source, HasSubstr("cutegen::take<false>(at_ids(_, place(j)), table_weight_size0"));
  const Json plan = to_json(program.plan);
  EXPECT_EQ(plan.at("symbols").at("vector"),
            "n1 % 4 == 0 ? ((dim(table_weight,1)) % 4 == 0 ? 4 : 1) : 1");
  EXPECT_THAT(plan.at("steps")[0].at("args").dump(), HasSubstr("dim(table_weight,0)"));
}

// x[ids] takes negative indices, gather and embedding do not.
TEST(Takes, NegativeIndicesCountFromTheEndWherePyTorchTakesThem) {
  EXPECT_THAT(only_source("take_two"), HasSubstr("cutegen::take<true>(at_rows_1(_, place(j))"));
  EXPECT_THAT(only_source("take_along"), HasSubstr("cutegen::take<false>(at_at_1(_, place(j))"));
  EXPECT_THAT(only_source("take_along_dim"), HasSubstr("cutegen::take<2>(at_at_1(_, place(j))"));
}

// The index of a row moves the row's address, so that the row may stay on the SM.
TEST(Takes, ARowKernelReadsItsIndexOnce) {
  const std::string source = only_source("take_then_norm");
  EXPECT_THAT(source,
              HasSubstr("cutegen::place<true>(*(ids + make_layout(across, Int<1>{})(row))"));
  EXPECT_THAT(source, Not(HasSubstr("load_taken")));
}

// Each row of the result knows where its row of x lies: a roll, then windows of 7 x 7 pixels.
TEST(Takes, ANormOfRolledWindowsIsOneKernel) {
  const std::string source = only_source("window_partition");
  EXPECT_THAT(source, HasSubstr("cutegen::place<5>(x_first + int64_t(make_layout(across, "));
  EXPECT_THAT(source, Not(HasSubstr("load_taken")));
  const Json plan = to_json(taking_program("window_partition").plan);
  EXPECT_FALSE(plan.contains("scratch"));
  EXPECT_EQ(plan.at("symbols").at("k1"), "((dim(x,1)))/((7))");
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("(dim(x,1)) == 28"));
}

// A window over neighbouring channels reads shifted elements, so no sum reaches memory.
TEST(Takes, AWindowOverChannelsIsASumOfShiftedElements) {
  const std::string source = only_source("local_response");
  EXPECT_THAT(source, HasSubstr("cutegen::take<6>("));
  EXPECT_THAT(source, HasSubstr("int(place_value) >= 2 && int(place_value) < int(size0)"));
  EXPECT_THAT(source, HasSubstr("cutegen::power_of_quarters<3>("));
  EXPECT_THAT(source, Not(HasSubstr("x_s0_1")));  // operands of one tensor share arguments
  const Json plan = to_json(taking_program("local_response").plan);
  EXPECT_FALSE(plan.contains("scratch"));
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("dim(x,1) <= 2000000000"));
}

TEST(Takes, AnIndexMayVaryAlongTheReducedAxis) {
  EXPECT_THAT(only_source("take_and_sum"),
              HasSubstr("cutegen::load_taken(g_x(_, j), e.x, outside,\n"));
  EXPECT_THAT(only_source("take_and_sum"), HasSubstr("if (outside) __trap();"));
}

// Only the chosen element of each row is read again; no log-softmax reaches memory.
TEST(Takes, AnElementOfALogSoftmaxNeedsNoScratch) {
  const Json plan = to_json(taking_program("take_of_log_softmax").plan);
  EXPECT_EQ(plan.at("steps").size(), 1U);
  EXPECT_FALSE(plan.contains("scratch"));
}

TEST(Takes, AComputedIndexIsKeptFirst) {
  const Json plan = to_json(taking_program("take_by_places").plan);
  EXPECT_EQ(plan.at("steps").size(), 2U);
  EXPECT_EQ(plan.at("scratch")[0].at("dtype"), "i64");
}

TEST(Takes, ScansAndOtherKernelsReadThroughIndices) {
  EXPECT_EQ(taking_program("scan_taken").sources.size(), 1U);
}

TEST(Takes, AMaskIsNoIndex) {
  Task task = golden_task("take_then_norm");
  for (Value& value : task.graph.placeholders)
    if (value.name == "ids") value.dtype = DType::boolean;
  EXPECT_THAT(refusal_of(task), HasSubstr("aten.index.Tensor by an index of dtype bool"));
}

TEST(Quantize, ValuesAndScalesAreOneKernel) {
  const std::string source = only_source("quantize_rows");
  EXPECT_THAT(source, HasSubstr("int8_t* __restrict__ out_0"));
  // The last bit of the quotient decides which integer it rounds to, so it is as exact as a
  // division.
  EXPECT_THAT(source, HasSubstr("= cutegen::rounded_quotient("));
  EXPECT_THAT(source, Not(HasSubstr("= cutegen::quotient(")));
  // The store truncates to integers anyway.
  EXPECT_THAT(source, Not(HasSubstr("truncf(")));
}

TEST(Picks, ReadOneElementOfTheRowAgain) {
  const KernelProgram program = taking_program("cross_entropy");
  const std::string source = program.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("cutegen::place<3>("));
  EXPECT_THAT(source, Not(HasSubstr("position")));
  EXPECT_THAT(to_json(program.plan).dump(), HasSubstr("dim(x,1) >= 1"));
}

TEST(Counts, AreSumsOfIntegers) {
  EXPECT_THAT(only_source("counts"), HasSubstr("cutegen::Total"));
  EXPECT_THAT(taking_program("no_integer_sum").sources.begin()->second,
              HasSubstr("cutegen::Total"));
}

}  // namespace
}  // namespace cutegen::recipes
