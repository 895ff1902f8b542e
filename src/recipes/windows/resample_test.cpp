// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/resample.h"
#include "recipes/emit/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelProgram program_of(const std::string& name) {
  const Task task = golden_task(name);
  const RecipeMatch match = match_recipe(task, kHopperArch);
  EXPECT_FALSE(match.recipe.empty()) << match.why;
  auto program = instantiate(task, match, match.safe);
  EXPECT_TRUE(program) << program.error().text();
  return *program;
}

std::string all_sources(const KernelProgram& program) {
  std::string text;
  for (const auto& [file, source] : program.sources) text += source;
  return text;
}

// The steps that are not packing of weights.
size_t kernels_of(const KernelProgram& program) {
  size_t count = 0;
  const Json plan = to_json(program.plan);
  for (const Json& step : plan.at("steps"))
    count += step.at("id").get<std::string>().rfind("pack", 0) != 0;
  return count;
}

// F.pad with zeros before a convolution costs nothing, also if it pads one side only.
TEST(Resample, ConvolutionsPadWithZerosThemselves) {
  const KernelProgram program = program_of("conv_causal");
  EXPECT_EQ(kernels_of(program), 1u);
  EXPECT_THAT(to_json(program.plan).dump(), HasSubstr("(dim(x,2))+8-4*(dim(c_weight,2)-1)-1)/1+1"));
  EXPECT_THAT(all_sources(program), Not(HasSubstr("PaddedAxis")));
}

TEST(Resample, OtherPaddingIsAKernelBeforeTheConvolution) {
  const KernelProgram program = program_of("conv_reflect");
  EXPECT_EQ(kernels_of(program), 2u);
  EXPECT_THAT(all_sources(program), HasSubstr("ReflectedAxis<1> from1"));
  EXPECT_THAT(to_json(program.plan).dump(), HasSubstr("dim(x,3) > 1"));
}

// A size of another tensor is an expression, so that the program holds at every shape.
TEST(Resample, SizesOfTensorsAreExpressions) {
  const KernelProgram program = program_of("resize_to_input");
  EXPECT_THAT(all_sources(program), HasSubstr("LinearAxis<Scale1_"));
  EXPECT_THAT(to_json(program.plan).dump(), HasSubstr("(dim(x,2))"));
}

TEST(Resample, FactorsScaleTheInputsSize) {
  const KernelProgram program = program_of("resize_by_factor");
  EXPECT_EQ(kernels_of(program), 1u);
  EXPECT_THAT(to_json(program.plan).dump(), HasSubstr("(dim(x,2))*3/2"));
}

// Threads compute several lines of results, which share lines of the input.
TEST(Resample, InterpolatedLinesShareTheirInput) {
  const KernelProgram program = program_of("resize_twice");
  EXPECT_THAT(all_sources(program),
              HasSubstr("Neighbours<cutegen::LinearAxis<Scale1, false>, kTall>"));
  EXPECT_THAT(all_sources(program), HasSubstr("kTall = 4;"));
  const std::string plan = to_json(program.plan).dump();
  EXPECT_THAT(plan, HasSubstr("*ceil_div((((dim(x,2))*2)),4)"));
  EXPECT_THAT(plan, HasSubstr("+((dim(x,3))-1)*(stride(x,3)) <= 2000000000"));
  EXPECT_THAT(all_sources(program_of("conv_reflect")), Not(HasSubstr("Neighbours<")));
}

// The branches write their parts of one scratch tensor, which the convolution reads.
TEST(Resample, JoinedBranchesAreNotCopied) {
  const KernelProgram program = program_of("join_into_conv");
  EXPECT_EQ(kernels_of(program), 3u);  // a transposed convolution, a copy of z, the convolution
  const Json plan = to_json(program.plan);
  size_t joined = 0;
  for (const Json& scratch : plan.at("scratch")) joined += scratch.at("name") == "cat";
  EXPECT_EQ(joined, 1u);
}

TEST(Resample, PixelShuffleIsAView) {
  EXPECT_EQ(kernels_of(program_of("pixel_shuffle")), 2u);
}

}  // namespace
}  // namespace cutegen::recipes
