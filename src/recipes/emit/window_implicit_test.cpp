// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window_implicit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

// A task as PyTorch ships: float32 convolutions in tf32.
struct Case {
  Task task;
  RecipeMatch match;
  explicit Case(const std::string& name, bool tf32 = true, std::string_view arch = kHopperArch)
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
  const Case c("conv_plain");
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
  const Case strict("conv_plain", false);
  EXPECT_EQ(strict.match.safe.at("wgmma"), 1);
  auto program = strict.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("kProducts = 3"));
  auto shipped = Case("conv_plain").program();
  ASSERT_TRUE(shipped) << shipped.error().text();
  EXPECT_THAT(shipped->sources.begin()->second, HasSubstr("kProducts = 1"));
}

TEST(Implicit, PartialSumsLeaveRoomForSmallerTiles) {
  const Json large{{"tile_n", 64}, {"tall", 8}, {"wide", 64}};  // 128 sums of a thread
  EXPECT_TRUE(Case("conv_plain").program(large));
  EXPECT_FALSE(Case("conv_plain", false).program(large));
}

TEST(Implicit, OtherGpusUseTheCudaCores) {
  const Case c("conv_plain", true, "sm_80");
  EXPECT_FALSE(c.match.safe.contains("wgmma"));
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, Not(HasSubstr("conv_wgmma")));
}

TEST(Implicit, DepthwiseConvolutionsKeepTheirTiles) {
  EXPECT_FALSE(Case("conv_depthwise").match.safe.contains("wgmma"));
}

TEST(Implicit, TheCudaCoresRemainAChoice) {
  auto program = Case("conv_plain").program({{"wgmma", 0}});
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("kPixels"));
}

TEST(Implicit, TilesThatDoNotFitAreRefused) {
  const Case c("conv_plain");
  for (const Json& changes : {Json{{"tile_n", 128}, {"tall", 16}, {"wide", 64}},  // registers
                              Json{{"planes", 3}}, Json{{"wide", 12}}}) {
    auto refused = c.program(changes);
    ASSERT_FALSE(refused) << changes.dump();
    EXPECT_EQ(refused.error().kind, ErrorKind::user) << changes.dump();
  }
}

TEST(Implicit, ATransposedConvolutionHasAPhaseForEachRemainder) {
  const Case c("conv_transposed");
  EXPECT_EQ(c.match.safe.at("wgmma"), 1);
  auto program = c.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("kTransposed = true"));
  // Four phases of two axes are tiles of their own; the last axis' phases share a tile.
  EXPECT_THAT(to_json(program->plan).at("symbols").at("all_tiles").get<std::string>(),
              HasSubstr("tiles2*2*"));
}

}  // namespace
}  // namespace cutegen::recipes
