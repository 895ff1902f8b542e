// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_grouped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program.h"
#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

// A 3 x 3 convolution of `channels` channels of images of height 56, followed by batch norm.
Task grouped_task(int64_t channels, int64_t groups, int64_t wide, int64_t stride = 1) {
  Task task = golden_task("conv_rows_bf16");
  const Shape x{32, channels, 56, wide}, weight{channels, channels / groups, 3, 3},
      out{32, channels, 55 / stride + 1, (wide - 1) / stride + 1};
  task.shapes.resize(1);
  auto shape_of = [&](const std::string& name, const Shape& now) {
    if (now.size() == 1) return Shape{channels};
    return name == "x" ? x : now.size() == 4 && now[3] == 3 ? weight : now.empty() ? now : out;
  };
  for (auto& tensor : task.tensors)
    tensor.shape = task.shapes[0].tensors[tensor.name] = shape_of(tensor.name, tensor.shape);
  for (auto& value : task.graph.placeholders) value.shape = shape_of(value.name, value.shape);
  for (Node& node : task.graph.nodes)
    for (auto& value : node.outputs) value.shape = shape_of("", value.shape);
  Node& convolution = task.graph.nodes.front();
  convolution.args[3] = {stride, stride};
  convolution.args[8] = groups;
  return task;
}

TEST(WindowGrouped, SmallGroupsOfHalvesUseTensorCores) {
  const Task task = grouped_task(256, 32, 56);
  const RecipeMatch match = match_recipe(task, kHopperArch);
  ASSERT_EQ(match.recipe, "windows") << match.why;
  EXPECT_EQ(match.safe.at("by_groups"), 1);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  for (const Error& error : check_plan(program->plan, task)) ADD_FAILURE() << error.text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("cutegen::multiply_two<Element>"));
  const Json plan = to_json(program->plan);
  // A row takes 60 cells, so at most 14 rows fit into a tile.
  const DeviceFacts device{.name = "sim:h200", .arch = "sm_90a", .sms = 132};
  EXPECT_TRUE(module_builds(*program, task, task.official(), device));
  EXPECT_THAT(plan.at("symbols").at("tall").get<std::string>(), HasSubstr("896/row_cells"));
}

TEST(WindowGrouped, LargeGroupsAndStridesKeepOtherKernels) {
  EXPECT_EQ(match_recipe(grouped_task(256, 4, 56), kHopperArch).safe.at("by_groups"), 0);
  EXPECT_FALSE(match_recipe(grouped_task(256, 32, 56, 2), kHopperArch).safe.contains("by_groups"));
  EXPECT_FALSE(match_recipe(grouped_task(256, 32, 56), "sm_80").safe.contains("by_groups"));
}

// A row and its padding must fit into a tile.
TEST(WindowGrouped, WideImagesAreRefusedByName) {
  EXPECT_FALSE(match_recipe(grouped_task(64, 8, 900), kHopperArch).safe.contains("by_groups"));
  const Task task = grouped_task(256, 32, 56);
  const RecipeMatch match = match_recipe(task, kHopperArch);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  ShapeCase shape = task.official();
  shape.tensors["x"][3] = shape.tensors["out"][3] = 900;
  auto builds =
      module_builds(*program, task, shape, {.name = "sim:h200", .arch = "sm_90a", .sms = 132});
  ASSERT_FALSE(builds);
  EXPECT_THAT(builds.error().message, HasSubstr("<= 896"));
}

}  // namespace
}  // namespace cutegen::recipes
