// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_strips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program.h"
#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Gives the tensors of a task with one convolution other types and shapes.
Task convolution_task(DType dtype, const Shape& x, const Shape& weight, const Shape& out,
                      int64_t groups) {
  Task task = golden_task("conv_depthwise");
  const std::map<std::string, Shape> shapes{{"x", x}, {"window.weight", weight}, {"out", out}};
  task.shapes.resize(1);
  for (auto& tensor : task.tensors)
    tensor.dtype = dtype,
    tensor.shape = task.shapes[0].tensors[tensor.name] = shapes.at(tensor.name);
  for (auto& value : task.graph.placeholders)
    value.dtype = dtype, value.shape = shapes.at(value.name == "x" ? "x" : "window.weight");
  Node& node = task.graph.nodes.front();
  node.outputs[0].dtype = dtype, node.outputs[0].shape = out;
  node.args[8] = groups;
  return task;
}

KernelProgram program_of(const Task& task, const RecipeMatch& match,
                         const Json& changes = Json::object()) {
  Json params = match.safe;
  params.update(changes);
  auto program = instantiate(task, match, params);
  if (!program) throw std::runtime_error(program.error().text());
  for (const Error& error : check_plan(program->plan, task)) ADD_FAILURE() << error.text();
  return *program;
}

TEST(WindowStrips, ADepthwiseConvolutionReadsAndStoresVectors) {
  const Task task = golden_task("conv_depthwise");
  const RecipeMatch match = match_recipe(task);
  EXPECT_EQ(match.safe.at("strip"), 4);
  const KernelProgram program = program_of(task, match);
  EXPECT_THAT(program.sources.begin()->second,
              AllOf(HasSubstr("load_pack_if<kVector>"), HasSubstr("write_pack(strip_")));
  const Json symbols = to_json(program.plan).at("symbols");
  EXPECT_THAT(symbols.at("vector").get<std::string>(), HasSubstr("== 0 ? 4 : 1"));
  EXPECT_THAT(symbols.at("whole").get<std::string>(), HasSubstr("%4"));
}

TEST(WindowStrips, RowsOfResultsThatAreNoWholeStripsUseTiles) {
  const auto strip_of = [](int64_t width) {
    return match_recipe(convolution_task(DType::f32, {16, 64, 128, width + 2}, {64, 1, 3, 3},
                                         {16, 64, 126, width}, 64))
        .safe.at("strip");
  };
  EXPECT_EQ(strip_of(510), 0);
  EXPECT_EQ(strip_of(126), 0);
}

// Rows of 28 elements are vectors of 8 bytes in 16 bits.
TEST(WindowStrips, RowsDecideTheWidthOfLoads) {
  const Task task =
      convolution_task(DType::bf16, {32, 192, 28, 28}, {192, 1, 3, 3}, {32, 192, 28, 28}, 192);
  const RecipeMatch match = match_recipe(task, kHopperArch);
  EXPECT_EQ(match.safe.at("strip"), 4);
  EXPECT_EQ(28 % match.safe.at("strip_rows").get<int>(), 0);
  const Json symbols = to_json(program_of(task, match).plan).at("symbols");
  EXPECT_THAT(symbols.at("vector").get<std::string>(), HasSubstr("== 0 ? 4 : 1"));
}

TEST(WindowStrips, OddRowsUseAnotherKernel) {
  const Task task = convolution_task(DType::f32, {2, 8, 7, 7}, {8, 1, 3, 3}, {2, 8, 7, 7}, 8);
  const RecipeMatch match = match_recipe(task);
  EXPECT_EQ(match.safe.at("strip"), 0);
  EXPECT_THAT(program_of(task, match).sources.begin()->second,
              Not(HasSubstr("cutegen/strips.cuh")));
}

// A thread multiplies an input for all four output channels of its group.
TEST(WindowStrips, AGroupOfFourChannelsSharesItsInputs) {
  const Task task =
      convolution_task(DType::f32, {32, 128, 56, 56}, {128, 4, 3, 3}, {32, 128, 56, 56}, 32);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const RecipeMatch match = match_recipe(task, arch);
    EXPECT_EQ(match.safe.at("strip"), 4);
    const KernelProgram program = program_of(task, match);
    EXPECT_THAT(program.sources.begin()->second, HasSubstr("kChannels = 4;"));
    EXPECT_THAT(to_json(program.plan).at("steps")[0].at("grid")[0].get<std::string>(),
                HasSubstr(",4)"));
  }
}

// The grid's third axis counts images, so a thread divides nothing.
TEST(WindowStrips, CtasShareLongLinesOfOneAxis) {
  Task task = convolution_task(DType::bf16, {4, 2048, 2048}, {2048, 1, 3}, {4, 2048, 2048}, 2048);
  for (size_t list : {3, 4, 5}) task.graph.nodes.front().args[list] = {1};
  task.graph.nodes.front().args[7] = {0};
  const RecipeMatch match = match_recipe(task);
  EXPECT_EQ(match.safe.at("strip_rounds"), 4);
  const KernelProgram lines = program_of(task, match),
                      others = program_of(task, match, {{"strip_threads", 256}});
  EXPECT_THAT(lines.sources.begin()->second, HasSubstr("kLines = true;"));
  EXPECT_EQ(to_json(lines.plan).at("steps")[0].at("grid")[2], "(dim(x,0))");
  // Half of such a CTA would be idle.
  EXPECT_THAT(others.sources.begin()->second, HasSubstr("kLines = false;"));
}

// Test shapes may have other groups: the loops over input channels are then not constant.
TEST(WindowStrips, OtherNumbersOfInputChannelsStayPossible) {
  const Task task = golden_task("conv_depthwise");
  const Json symbols = to_json(program_of(task, match_recipe(task)).plan).at("symbols");
  EXPECT_THAT(symbols.at("inputs").get<std::string>(), HasSubstr(" == 1 ? 1 : 0"));
}

TEST(WindowStrips, TooManySumsAreRefused) {
  const Task task = golden_task("conv_depthwise");
  const RecipeMatch match = match_recipe(task);
  EXPECT_FALSE(instantiate(task, match, [&] {
    Json params = match.safe;
    params["strip"] = 8;
    return params;
  }()));
}

}  // namespace
}  // namespace cutegen::recipes
