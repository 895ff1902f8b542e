// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul.h"

#include <gmock/gmock.h>

#include "recipes/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Case {
  Task task;
  RecipeMatch match;
  explicit Case(const std::string& name, MathMode mode = MathMode::fp32) : task(golden_task(name)) {
    task.math_mode = mode;
    match = match_recipe(task);
    if (match.recipe != "matmul") throw std::runtime_error(match.why);
  }
  KernelProgram program(const Json& changes = Json::object()) const {
    Json params = match.safe;
    params.update(changes);
    auto program = instantiate(task, match, params);
    if (!program) throw std::runtime_error(program.error().text());
    return *program;
  }
  std::string source(const Json& changes = Json::object()) const {
    return program(changes).sources.at("kernel.cu");
  }
};

// The whole text of one program: what people see in out/.
TEST(Matmul, WritesTheGoldenProgram) {
  KernelProgram program = Case("mm_bias_residual").program({{"vector", 4}});
  auto kernel = read_file(golden_folder() / "mm_bias_residual.cu");
  auto plan = read_file(golden_folder() / "mm_bias_residual.plan.json");
  ASSERT_TRUE(kernel && plan);
  EXPECT_EQ(program.sources.at("kernel.cu"), *kernel);
  EXPECT_EQ(dump_json(to_json(program.plan), 2) + "\n", *plan);
}

TEST(Matmul, MaskIsComputedFromThePlace) {
  std::string source = Case("mm_upper").source();
  EXPECT_THAT(source, HasSubstr("n + v - m >= 1"));
  EXPECT_THAT(source, HasSubstr("last = first"));  // tiles below the diagonal are skipped
  EXPECT_THAT(Case("mm_transposed_out").source(), Not(HasSubstr("last = first")));
}

TEST(Matmul, LargeDepthIsSharedAmongCtas) {
  Case c("mm_large_k");
  EXPECT_GT(c.match.safe.at("split").get<int>(), 1);
  KernelProgram program = c.program();
  EXPECT_THAT(program.sources.at("kernel.cu"), HasSubstr("combine("));
  ASSERT_EQ(program.plan.steps.size(), 2u);
  EXPECT_EQ(program.plan.scratch.size(), 1u);
  EXPECT_EQ(Case("mm_plain").match.safe.at("split"), 1);
}

TEST(Matmul, TensorCoresNeedTheTasksLeave) {
  EXPECT_FALSE(Case("mm_plain").match.safe.contains("tensor_cores"));
  Case c("mm_plain", MathMode::bf16);
  EXPECT_EQ(c.match.safe.at("tensor_cores"), 0);
  EXPECT_THAT(c.source(), HasSubstr("SimtGemm<"));
  EXPECT_THAT(c.source({{"tensor_cores", 1}}), HasSubstr("MmaGemm<bfloat16_t, float, float"));
  EXPECT_THAT(Case("mm_plain", MathMode::tf32).source({{"tensor_cores", 1}}),
              HasSubstr("MmaGemm<tfloat32_t"));
  EXPECT_THAT(Case("mm_plain", MathMode::fp16).source({{"tensor_cores", 1}}),
              HasSubstr("MmaGemm<half_t"));
}

TEST(Matmul, RefusesTilesThatDoNotFit) {
  Case c("mm_plain"), cores("mm_plain", MathMode::fp16);
  auto legal = [](const Case& of, const Json& changes) {
    Json params = of.match.safe;
    params.update(changes);
    return instantiate(of.task, of.match, params).has_value();
  };
  EXPECT_TRUE(legal(c, {{"tile_m", 128}, {"tile_n", 128}, {"stages", 2}}));
  EXPECT_FALSE(legal(c, {{"stages", 3}}));                                       // cores only
  EXPECT_FALSE(legal(c, {{"tile_m", 128}, {"tile_n", 128}, {"threads", 128}}));  // registers
  EXPECT_FALSE(legal(c, {{"tile_k", 8}, {"vector", 4}}));  // too few vectors for the threads
  EXPECT_TRUE(legal(cores, {{"tensor_cores", 1}, {"stages", 4}}));
  EXPECT_FALSE(legal(cores, {{"tensor_cores", 1}, {"tile_k", 16}}));  // rows of 32 bytes
}

// Sizes come from tensors: no number of the official shape is in source or plan.
TEST(Matmul, HoldsNoSizes) {
  KernelProgram program = Case("mm_large_k").program();
  EXPECT_THAT(program.sources.at("kernel.cu"), Not(HasSubstr("65536")));
  EXPECT_THAT(dump_json(to_json(program.plan)), Not(HasSubstr("65536")));
}

}  // namespace
}  // namespace cutegen::recipes
