// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program.h"
#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

struct RowsCase {
  Task task;
  RecipeMatch match;
  explicit RowsCase(const std::string& name, bool tf32 = true, std::string_view arch = kHopperArch)
      : task(golden_task(name)) {
    task.tf32_convolutions = tf32;
    match = match_recipe(task, arch);
    EXPECT_EQ(match.recipe, "windows") << match.why;
  }
  KernelProgram program(const Json& changes) const {
    Json params = match.safe;
    params.update(changes);
    auto program = instantiate(task, match, params);
    if (!program) throw std::runtime_error(program.error().text());
    return *program;
  }
};

TEST(WindowRows, MultipliesHalvesWithoutConversion) {
  const KernelProgram p = RowsCase("conv_rows_bf16").program({{"by_rows", 1}});
  const std::string source = p.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("cutegen/conv_rows.cuh"));
  EXPECT_THAT(source, HasSubstr("using Element = bfloat16_t;"));
  const Json map = to_json(p.plan).at("tensor_maps").at("map_input");
  EXPECT_EQ(map.at("im2col").at("lower"), Json::array({"0-1", "0-1"}));
}

// Of images whose channels are not multiples of 16 bytes, it loads the largest aligned vectors.
TEST(WindowRows, LoadsAlignedVectorsOfTheInput) {
  const RowsCase halves("conv_rows_bf16"), floats("conv_rows_floats");
  const auto rule = [](const RowsCase& c) {
    return to_json(c.program({{"by_rows", 1}}).plan).at("symbols").at("vector").get<std::string>();
  };
  EXPECT_THAT(rule(halves), HasSubstr("((dim(x,2))*(dim(x,3)))%4 == 0 ? 4 : "));
  EXPECT_THAT(rule(halves), HasSubstr("((dim(x,2))*(dim(x,3)))%8 == 0 ? 8 : "));
  EXPECT_THAT(rule(floats), Not(HasSubstr("%8")));
}

TEST(WindowRows, CopiesTheInputToChannelsLastOrder) {
  const KernelProgram p = RowsCase("conv_rows_floats").program({{"by_rows", 1}});
  const Json plan = to_json(p.plan);
  ASSERT_EQ(plan.at("steps").size(), 3u);
  EXPECT_EQ(plan.at("steps")[0].at("id"), "arrange");
  const Json& map = plan.at("tensor_maps").at("map_input");
  EXPECT_EQ(map.at("tensor"), "turned");
  EXPECT_EQ(map.at("dims").size(), 5u);
  // The last axis comes first.
  EXPECT_EQ(map.at("im2col").at("lower"), Json::array({"0-2", "0-1", "0-0"}));
  EXPECT_EQ(map.at("im2col").at("steps"), Json::array({1, 2, 1}));
}

// The last kernel begins while the input is copied. Only reads of the copies wait.
TEST(WindowRows, BeginsBeforeTheCopyEnds) {
  const KernelProgram halves = RowsCase("conv_rows_bf16").program({{"by_rows", 1}}),
                      floats = RowsCase("conv_rows_floats").program({{"by_rows", 1}});
  for (const KernelProgram* p : {&halves, &floats}) {
    const Json plan = to_json(p->plan);
    EXPECT_FALSE(plan.at("steps")[0].contains("pdl"));
    for (size_t i = 1; i < plan.at("steps").size(); ++i)
      EXPECT_EQ(plan.at("steps")[i].at("pdl"), true);
  }
  const std::string wait = "cutegen::await_previous_step();";
  EXPECT_THAT(halves.sources.begin()->second, HasSubstr("conv.start_loading();\n      " + wait));
  const std::string source = floats.sources.begin()->second;  // reads flags first
  EXPECT_LT(source.rfind(wait), source.rfind("auto convolve ="));
}

TEST(WindowRows, KeepsPatchesForAllFilterTaps) {
  const Json patches = {{"by_rows", 1}, {"rows_patch", 128}, {"rows_across", 8}};
  const KernelProgram p = RowsCase("conv_rows_bf16").program(patches);
  const std::string source = p.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("cutegen/conv_patches.cuh"));
  EXPECT_THAT(source, HasSubstr("kTileM = 128, kTileN = 96, kAcross = 8, kSpatial = 2;"));
  // 18 lines of 10 positions with 64 channels.
  EXPECT_THAT(source, HasSubstr("cg_map_input[15] = {1, 4, 64, 10, 18, 1, 0, "));
  const Json plan = to_json(p.plan);
  EXPECT_FALSE(plan.at("tensor_maps").at("map_input").contains("im2col"));
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("dim(conv_weight,2) == 3"));
}

// A strip of all 28 columns: lines of 30 places. 128 places and a tap's two columns reach into six
// lines, if they begin at the end of a line, and filter taps need two more.
TEST(WindowRows, TilesJoinLines) {
  const RowsCase c("conv_rows_bf16");
  const KernelProgram p =
      c.program({{"by_rows", 1}, {"rows_patch", 128}, {"rows_across", 1}, {"rows_keep", 0}});
  const std::string source = p.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("kAcross = 1, kSpatial = 2;"));
  EXPECT_THAT(source, HasSubstr("kStrip = 28;"));
  EXPECT_THAT(source, HasSubstr("cg_map_input[15] = {1, 4, 64, 30, 8, 1, 0, "));
}

TEST(WindowRows, PatchesNeedStrideOneAndFewTaps) {
  const RowsCase c("conv_rows_floats");  // stride 2, 15 taps
  Json params = c.match.safe;
  params.update({{"by_rows", 1}, {"rows_patch", 128}});
  EXPECT_FALSE(instantiate(c.task, c.match, params));
}

TEST(WindowRows, MultipliesFloatsInHalfPrecisionIfTheyFit) {
  const KernelProgram p = RowsCase("conv_rows_floats").program({{"by_rows", 1}});
  const std::string source = p.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("using Element = half_t;"));
  EXPECT_THAT(source, HasSubstr("using Element = tfloat32_t;"));
  EXPECT_THAT(source, HasSubstr("if (cutegen::any_flag(flags, flag_count))"));
  const Json plan = to_json(p.plan);
  EXPECT_EQ(plan.at("steps")[1].at("id"), "arrange_wide");
  EXPECT_EQ(plan.at("tensor_maps").at("map_wide_input").at("tensor"), "wide_turned");
}

TEST(WindowRows, StrictFloat32MultipliesPairs) {
  const RowsCase c("conv_deep", false);
  EXPECT_EQ(c.match.safe.at("by_rows"), 1);
  const KernelProgram p = c.program({{"by_rows", 1}, {"rows_patch", 128}, {"rows_across", 8}});
  ASSERT_EQ(p.sources.size(), 2u);
  const std::string rows = p.sources.at("kernel.cu"), wide = p.sources.at("kernel_wide.cu");
  EXPECT_THAT(rows, HasSubstr("static constexpr int kParts = 2;"));
  // Weights of up to 1 / 24, because a result has 576 products.
  EXPECT_THAT(rows, HasSubstr("kScale = 0x1p8f;"));
  EXPECT_THAT(rows, HasSubstr("if (cutegen::any_flag(flags, flag_count)) return;"));
  EXPECT_THAT(wide, HasSubstr("if (!cutegen::any_flag(flags, flag_count)) return;"));
  EXPECT_THAT(wide, HasSubstr("kProducts = 3;"));
  const Json plan = to_json(p.plan);
  std::vector<std::string> steps;
  for (const Json& step : plan.at("steps")) steps.push_back(step.at("id"));
  EXPECT_THAT(steps, testing::ElementsAre("arrange", "window", "pack_wide", "window_wide"));
  EXPECT_EQ(plan.at("tensor_maps").at("map_input").at("dims")[0], "max(2*pitch,1)");
  EXPECT_EQ(plan.at("tensor_maps").at("map_weights").at("dims")[0], "2*depth");
}

TEST(WindowRows, SumsOfPairsNeedManyRegisters) {
  const RowsCase c("conv_deep", false);
  for (const Json& more : {Json{{"rows_n", 96}}, Json{{"rows_keep", 1}}, Json{{"rows_patch", 0}}}) {
    Json params = c.match.safe;
    params.update({{"by_rows", 1}});
    params.update(more);
    EXPECT_FALSE(instantiate(c.task, c.match, params)) << more;
  }
}

TEST(WindowRows, StridedConvolutionsInStrictFloat32KeepTheOtherKernel) {
  const RowsCase strict("conv_rows_floats", false);
  EXPECT_FALSE(strict.match.safe.contains("by_rows"));
}

TEST(WindowRows, DepthwiseConvolutionsAndFewChannelsHaveNoRows) {
  for (const char* name : {"conv_depthwise", "conv_transposed", "conv_channel_softmax"})
    EXPECT_FALSE(RowsCase(name).match.safe.contains("by_rows")) << name;
}

// With a residual, the other kernel took 1.8 times as long on an H200.
TEST(WindowRows, IsChosenForConvolutionsWithAResidual) {
  for (const char* name : {"conv_residual_bf16", "conv_rows_bf16"})
    EXPECT_EQ(RowsCase(name).match.safe.at("by_rows"), 1) << name;
}

TEST(WindowRows, DividesStridedTransposedConvolutionsIntoPhases) {
  const RowsCase c("conv_transposed_bf16");
  const std::string source = c.program({{"by_rows", 1}}).sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("kPhases = 2, kSpread = 2;"));
  // The window has 2 x 2 taps. Even lines of the result use its first line, odd lines use both.
  EXPECT_THAT(source, HasSubstr("return phase == 0 ? 0x3u : 0xfu;"));
  EXPECT_THAT(source, HasSubstr("rest % window.out[2] * 2 + own / 128;"));
  Json params = c.match.safe;
  params.update({{"by_rows", 1}, {"rows_patch", 0}});  // phases need patches
  EXPECT_FALSE(instantiate(c.task, c.match, params));
}

// A tile with both phases of the last axis would have 64 of the 96 channels.
TEST(WindowRows, ATileThatReducesOverManyChannelsHasOnePhase) {
  const RowsCase c("conv_transposed_min_bf16");
  const std::string source = c.program({{"by_rows", 1}}).sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("kPhases = 4, kSpread = 1;"));
  EXPECT_THAT(
      source,
      HasSubstr("return phase == 0 ? 0x1u : phase == 1 ? 0x3u : phase == 2 ? 0x5u : 0xfu;"));
}

TEST(WindowRows, ReducesOverTheChannelsOfATile) {
  const RowsCase c("conv_min_bf16");
  const KernelProgram p = c.program({{"by_rows", 1}, {"rows_keep", 0}, {"rows_n", 64}});
  EXPECT_THAT(to_json(p.plan).at("requires").dump(), HasSubstr("dim(window_weight,0)/(1) <= 64"));
  const std::string source = p.sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("kRowValues = 1;"));
  EXPECT_THAT(source, HasSubstr("conv.template reduce<cutegen::Min, true>("));
  Json params = c.match.safe;
  params.update({{"by_rows", 1}, {"rows_n", 32}});  // the tile must have all 64 channels
  EXPECT_FALSE(instantiate(c.task, c.match, params));
}

TEST(WindowRows, ATileMustBeAWidthThatTheEngineHas) {
  const RowsCase c("conv_rows_bf16");
  Json params = c.match.safe;
  params.update({{"by_rows", 1}, {"rows_n", 40}});
  EXPECT_FALSE(instantiate(c.task, c.match, params));
}

}  // namespace
}  // namespace cutegen::recipes
