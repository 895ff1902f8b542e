// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window.h"
#include "recipes/emit/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct WindowCase {
  Task task;
  RecipeMatch match;
  explicit WindowCase(const std::string& name)
      : task(golden_task(name)), match(match_recipe(task)) {
    EXPECT_EQ(match.recipe, "windows") << match.why;
  }
  Result<KernelProgram> program(const Json& changes = Json::object()) const {
    Json params = match.safe;
    params.update(changes);
    return instantiate(task, match, params);
  }
  std::string source(const Json& changes = Json::object()) const {
    auto made = program(changes);
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_EQ(made->sources.size(), 1u);
    return made->sources.begin()->second;
  }
};

TEST(Windows, PoolingAlongOneAxisIsOneKernelWithoutCopies) {
  const WindowCase line("pool_line");
  EXPECT_EQ(line.match.safe.at("columns"), 3001);
  EXPECT_EQ(line.match.safe.at("rows"), 1);
  const std::string source = line.source();
  EXPECT_THAT(source, HasSubstr("kTeam = 256,"));
  EXPECT_THAT(source, HasSubstr("kKernel1 = 1;"));
  EXPECT_THAT(source, HasSubstr("kKernel2 = 4;"));
}

TEST(Windows, LinesAreReadInWholeVectors) {
  auto program = WindowCase("pool_apart").program();
  ASSERT_TRUE(program) << program.error().text();
  const std::string rule = to_json(program->plan).at("symbols").at("vector");
  EXPECT_THAT(rule, HasSubstr("(dim(x,3))%4"));
  EXPECT_THAT(rule, HasSubstr("((stride(x,3)) == 1 ? 0 : 1)"));
  EXPECT_THAT(rule, HasSubstr("(stride(x,2))%4"));
}

// Enough loads in flight: a thread of small windows apart from each other computes several results.
TEST(Windows, SmallWindowsApartFromEachOtherShareAThread) {
  const WindowCase apart("pool_apart");
  EXPECT_EQ(apart.match.safe.at("rows"), 4);
  EXPECT_EQ(apart.match.safe.at("team"), 32);
}

// Result p ends at plane 2 * p + 5 of the input, where result p + 3 begins.
TEST(Windows, ATeamKeepsThePlaneThatItsNextResultNeeds) {
  const WindowCase volume("pool_volume");
  EXPECT_EQ(volume.match.safe.at("planes"), 8);
  auto program = volume.program();
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(to_json(program->plan).at("symbols").at("teams").get<std::string>(),
              AllOf(HasSubstr("*3*ceil_div("), HasSubstr(",24)")));
  EXPECT_FALSE(volume.program({{"rows", 16}}));
  EXPECT_TRUE(volume.program({{"rows", 8}, {"planes", 1}}));
}

TEST(Windows, PlanesNeedAFirstOfThreeAxes) {
  EXPECT_FALSE(WindowCase("pool_apart").program({{"planes", 2}}));
}

TEST(Windows, OtherKernelsRemainAChoice) {
  const WindowCase apart("pool_apart");
  EXPECT_THAT(apart.source({{"team", 0}, {"columns", 0}}), Not(HasSubstr("__shared__")));
  EXPECT_THAT(apart.source({{"team", 0}}), HasSubstr("__shared__ float tile"));
}

TEST(Windows, ATileOfADepthwiseConvolutionRequiresItsKernel) {
  const WindowCase depthwise("conv_depthwise");
  EXPECT_EQ(depthwise.match.safe.at("columns"), 256);
  EXPECT_EQ(depthwise.match.safe.at("rows"), 16);
  auto program = depthwise.program({{"strip", 0}});
  ASSERT_TRUE(program) << program.error().text();
  const std::string plan = to_json(program->plan).dump();
  EXPECT_THAT(plan, HasSubstr(",2) == 3"));
  EXPECT_THAT(plan, HasSubstr(",3) == 3"));
  EXPECT_THAT(depthwise.source({{"strip", 0}, {"columns", 0}}), HasSubstr("kChannels = 1;"));
}

// A CTA computes results of one channel, so it reads the channel's bias before its results.
TEST(Windows, ATileReadsTheValuesOfItsChannelOnce) {
  Task task = golden_task("conv_depthwise");
  const Shape channels{task.graph.nodes.front().args.back().get<int64_t>()};
  task.tensors.push_back({.name = "bias", .role = TensorRole::parameter, .shape = channels});
  for (ShapeCase& shape : task.shapes) shape.tensors["bias"] = channels;
  task.graph.placeholders.push_back({.name = "bias", .dtype = DType::f32, .shape = channels});
  task.graph.nodes.front().args[2] = {{"ref", "bias"}};
  const RecipeMatch match = match_recipe(task);
  Json params = match.safe;
  params["strip"] = 0;
  auto program = instantiate(task, match, params);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  const size_t bias = source.find("of_channel(r_bias"), barrier = source.find("__syncthreads()"),
               result = source.find("compute(window, kept.element[0], ");
  EXPECT_LT(bias, barrier) << source;
  EXPECT_LT(barrier, result) << source;
  EXPECT_NE(result, std::string::npos) << source;
}

TEST(Windows, RowsNeedAnAxisBeforeTheLast) {
  auto refused = WindowCase("pool_line").program({{"rows", 2}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot be combined"));
}

// Offsets inside an image have 32 bits.
TEST(Windows, ImagesBeyondThirtyTwoBitsAreRefusedByName) {
  for (bool hopper : {false, true}) {
    Task task = golden_task("conv_plain");
    task.tf32_convolutions = true;
    const RecipeMatch match = match_recipe(task, hopper ? kHopperArch : "sm_80");
    EXPECT_EQ(match.safe.contains("wgmma"), hopper);
    auto program = instantiate(task, match, match.safe);
    ASSERT_TRUE(program) << program.error().text();
    const DeviceFacts device{.name = "sim:h200", .arch = "sm_90a", .sms = 132};
    ShapeCase shape = task.official();
    EXPECT_TRUE(module_builds(*program, task, shape, device));
    shape.tensors["x"] = {1, 16, 50000, 50000};
    shape.tensors["out"] = {1, 32, 50000, 50000};
    auto builds = module_builds(*program, task, shape, device);
    ASSERT_FALSE(builds);
    EXPECT_EQ(builds.error().kind, ErrorKind::unsupported);
    // Hopper's kernel reads channels by 32-bit distances in bytes.
    EXPECT_THAT(builds.error().message, HasSubstr(hopper ? "<= 1000000000" : "<= 2000000000"));
  }
}

// An image of 160,000,000 pixels fits, but not with its 16 channels.
TEST(Windows, ChannelsTogetherBeyondThirtyTwoBitsAreRefusedByName) {
  Task task = golden_task("conv_plain");
  const RecipeMatch match = match_recipe(task);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  ShapeCase shape = task.official();
  shape.tensors["x"] = {1, 16, 10000, 16000};
  shape.tensors["out"] = {1, 32, 10000, 16000};
  auto builds = module_builds(*program, task, shape, {.name = "sim:h200", .arch = "sm_90a"});
  ASSERT_FALSE(builds);
  EXPECT_THAT(builds.error().message, HasSubstr("<= 2000000000"));
}

}  // namespace
}  // namespace cutegen::recipes
