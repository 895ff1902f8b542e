// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_implicit.h"
#include "recipes/emit/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

// A task as PyTorch ships: float32 convolutions in tf32.
struct ImplicitCase {
  Task task;
  RecipeMatch match;
  explicit ImplicitCase(const std::string& name, bool tf32 = true,
                        std::string_view arch = kHopperArch)
      : task(golden_task(name)) {
    task.tf32_convolutions = tf32;
    match = match_recipe(task, arch);
    EXPECT_EQ(match.recipe, "windows") << match.why;
  }
  Result<KernelProgram> program(const Json& changes = Json::object()) const {
    Json params = match.safe;
    params.update(changes);
    return instantiate(task, match, params);
  }
};

TEST(Implicit, Tf32ConvolutionsUseTheTensorCoresOfHopper) {
  const ImplicitCase c("conv_plain");
  EXPECT_EQ(c.match.safe.at("wgmma"), 1);
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("cutegen/conv_wgmma.cuh"));
  const Json plan = to_json(program->plan);
  EXPECT_EQ(plan.at("arch"), Json::array({"sm_90a"}));
  ASSERT_EQ(plan.at("steps").size(), 2u);
  EXPECT_EQ(plan.at("steps")[0].at("id"), "pack");
  EXPECT_EQ(plan.at("defines").at("KERNEL0"), 1);
}

TEST(Implicit, StrictFloat32TakesThreeProducts) {
  const ImplicitCase strict("conv_plain", false);
  EXPECT_EQ(strict.match.safe.at("wgmma"), 1);
  auto program = strict.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("kProducts = 3"));
  auto shipped = ImplicitCase("conv_plain").program();
  ASSERT_TRUE(shipped) << shipped.error().text();
  EXPECT_THAT(shipped->sources.begin()->second, HasSubstr("kProducts = 1"));
}

TEST(Implicit, PartialSumsLeaveRoomForSmallerTiles) {
  const Json large{{"tile_n", 64}, {"tall", 8}, {"wide", 64}};  // 128 sums of a thread
  EXPECT_TRUE(ImplicitCase("conv_plain").program(large));
  EXPECT_FALSE(ImplicitCase("conv_plain", false).program(large));
}

// With 72 products per result, writing limits the speed, and longer rows are written faster. With
// 576 products it does not.
TEST(Implicit, LinesAreLongWhereWritingIsTheBottleneck) {
  const Json thin = ImplicitCase("conv_thin").match.safe,
             deep = ImplicitCase("conv_deep").match.safe;
  EXPECT_EQ(thin.at("wide"), 128);
  EXPECT_EQ(deep.at("wide"), 64);
  // Three stages hold all weights, so they stay in shared memory; 18 would not.
  EXPECT_GE(thin.at("stages"), 3);
  EXPECT_EQ(deep.at("stages"), 4);
}

// Direct stores pay only if the work after the convolution takes many instructions.
TEST(Implicit, ResultsMayLeaveRegistersDirectly) {
  const ImplicitCase c("conv_thin");
  EXPECT_GT(c.match.safe.at("slice"), 0);
  EXPECT_EQ(ImplicitCase("conv_rows_floats").match.safe.at("slice"), 32) << "it reads a residual";
  auto direct = c.program({{"slice", 0}}), staged = c.program();
  ASSERT_TRUE(direct) << direct.error().text();
  ASSERT_TRUE(staged) << staged.error().text();
  EXPECT_THAT(direct->sources.begin()->second, HasSubstr("kSlice = 0;"));
  EXPECT_THAT(staged->sources.begin()->second, Not(HasSubstr("kSlice = 0;")));
}

// Both phases of a position lie in the same thread.
TEST(Implicit, NeighboursOfATransposedConvolutionAreStoredTogether) {
  const ImplicitCase c("conv_transposed");
  EXPECT_GT(c.match.safe.at("slice"), 0);  // rows of 139 results: pairs are not aligned
  auto direct = c.program({{"slice", 0}}), staged = c.program();
  ASSERT_TRUE(direct) << direct.error().text();
  ASSERT_TRUE(staged) << staged.error().text();
  EXPECT_THAT(direct->sources.begin()->second, HasSubstr("cutegen::store_pair_if(inside, "));
  EXPECT_TRUE(to_json(direct->plan).at("defines").contains("PAIRS"));
  EXPECT_THAT(staged->sources.begin()->second, Not(HasSubstr("store_pair")));
  auto plain = ImplicitCase("conv_thin").program();
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_THAT(plain->sources.begin()->second, Not(HasSubstr("store_pair")));
}

// tf32 rounds far more coarsely than the fast functions; strict float32 does not.
TEST(Implicit, ASoftmaxAfterTf32UsesFastFunctions) {
  auto shipped = ImplicitCase("conv_channel_softmax").program();
  ASSERT_TRUE(shipped) << shipped.error().text();
  EXPECT_THAT(shipped->sources.begin()->second, HasSubstr("cutegen::fast_exp("));
  auto strict = ImplicitCase("conv_channel_softmax", false).program();
  ASSERT_TRUE(strict) << strict.error().text();
  EXPECT_THAT(strict->sources.begin()->second, Not(HasSubstr("fast_")));
}

TEST(Implicit, WorkOfAChannelIsDoneOnceForManyPlaces) {
  auto program = ImplicitCase("conv_thin").program();
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("kChannelValues = 1;"));
  EXPECT_THAT(source, HasSubstr("conv.each_channel(storage, "));
  EXPECT_THAT(source, HasSubstr("compute(window, kept.element[0], "));
}

TEST(Implicit, OtherGpusUseTheCudaCores) {
  const ImplicitCase c("conv_plain", true, "sm_80");
  EXPECT_FALSE(c.match.safe.contains("wgmma"));
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, Not(HasSubstr("conv_wgmma")));
}

TEST(Implicit, DepthwiseConvolutionsKeepTheirTiles) {
  EXPECT_FALSE(ImplicitCase("conv_depthwise").match.safe.contains("wgmma"));
}

TEST(Implicit, TheCudaCoresRemainAChoice) {
  auto program = ImplicitCase("conv_plain").program({{"wgmma", 0}});
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("kPixels"));
}

TEST(Implicit, TilesThatDoNotFitAreRefused) {
  const ImplicitCase c("conv_plain");
  for (const Json& changes : {Json{{"tile_n", 128}, {"tall", 16}, {"wide", 64}},  // registers
                              Json{{"planes", 3}}, Json{{"wide", 12}}}) {
    auto refused = c.program(changes);
    ASSERT_FALSE(refused) << changes.dump();
    EXPECT_EQ(refused.error().kind, ErrorKind::user) << changes.dump();
  }
}

TEST(Implicit, ATransposedConvolutionHasAPhaseForEachRemainder) {
  const ImplicitCase c("conv_transposed");
  EXPECT_EQ(c.match.safe.at("wgmma"), 1);
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("kTransposed = true"));
  // The 2 * 2 phases of two axes have tiles of their own; the phases of the last axis share a tile.
  EXPECT_THAT(to_json(program->plan).at("symbols").at("all_tiles").get<std::string>(),
              HasSubstr("tiles2*2*"));
}

// The kernels of a program, in order.
std::vector<std::string> kernels(const ImplicitCase& c) {
  auto program = c.program();
  EXPECT_TRUE(program) << program.error().text();
  std::vector<std::string> list;
  const Json plan = to_json(program->plan);
  for (const Json& step : plan.at("steps")) list.push_back(step.at("kernel"));
  return list;
}

TEST(Implicit, AReductionOverTheChannelsIsPartOfTheConvolution) {
  const ImplicitCase c("conv_channel_min");
  EXPECT_EQ(c.match.why, "one aten.convolution.default and reductions over its channels");
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("kRowValues = 1;"));
  EXPECT_THAT(source, HasSubstr("conv.template reduce<cutegen::Min, true>"));
  EXPECT_THAT(source, HasSubstr("conv.each_place(storage, place"));
  EXPECT_THAT(source, Not(HasSubstr("conv.write(")));
  const Json plan = to_json(program->plan);
  EXPECT_EQ(plan.at("steps").size(), 2u);
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("dim(window_weight,0)/(1) <= 32"));
}

TEST(Implicit, ASoftmaxReducesTwiceAndWritesAllChannels) {
  const ImplicitCase c("conv_channel_softmax", false);
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  const size_t max = source.find("conv.template reduce<cutegen::Max, false>"),
               sum = source.find("conv.template reduce<cutegen::PlainSum, true>"),
               write = source.find("conv.write(");
  EXPECT_LT(max, sum);
  EXPECT_LT(sum, write);
  EXPECT_THAT(source, HasSubstr("kRowValues = 2;"));
  EXPECT_THAT(source, Not(HasSubstr("conv.each_place(")));
  // The total is inverted once per position, and no exponential is computed twice.
  EXPECT_THAT(source, HasSubstr("rows_of_compute(conv.row(storage, 1, at.row), rows.inverse)"));
  EXPECT_THAT(source, HasSubstr("compute(window, at.rows.total, at.rows.inverse, "));
  EXPECT_EQ(source.find("expf("), source.rfind("expf("));
  EXPECT_EQ(kernels(ImplicitCase("conv_channel_softmax_wide")),
            (std::vector<std::string>{"pack", "window"}));
}

TEST(Implicit, ReductionsOverTheChannelsNeedAllOfThemInOneTile) {
  const ImplicitCase c("conv_channel_min");  // 24 channels
  EXPECT_TRUE(c.program({{"tile_n", 64}}));
  EXPECT_FALSE(c.program({{"tile_n", 16}}));
}

TEST(Implicit, AllParametersOfFusedReductionsGiveSoundPlans) {
  for (const char* name : {"conv_channel_min", "conv_channel_softmax"}) {
    const ImplicitCase c(name);
    const std::vector<Json> near = neighbours(c.match, c.match.safe);
    EXPECT_GT(near.size(), 5u) << name;
    for (const Json& params : near) {
      auto program = instantiate(c.task, c.match, params);
      ASSERT_TRUE(program) << program.error().text();
      EXPECT_THAT(program->sources.begin()->second, Not(HasSubstr("{{")));
      for (const Error& error : check_plan(program->plan, c.task)) ADD_FAILURE() << error.text();
    }
  }
}

TEST(Implicit, OtherReductionsAreStagesOfTheirOwn) {
  const std::vector<std::string> apart{"pack_1", "window_1", "reduction_2"};
  EXPECT_EQ(kernels(ImplicitCase("conv_channel_mean_wide")), apart);    // 136 channels
  EXPECT_EQ(kernels(ImplicitCase("conv_channel_sum_grouped")), apart);  // two groups
  EXPECT_EQ(kernels(ImplicitCase("conv_channel_argmax")), apart);       // positions, not floats
  EXPECT_EQ(kernels(ImplicitCase("conv_channel_min", true, "sm_80")),
            (std::vector<std::string>{"window_1", "reduction_2"}));
}

}  // namespace
}  // namespace cutegen::recipes
