// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: each golden task has a program, whose kernels suit the layer's size.
#include "recipes/emit/recurrent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelProgram recurrent_program(const std::string& name, const char* arch = "sm_90a",
                                const Json& changes = Json::object()) {
  const Task task = golden_task(name);
  const RecipeMatch match = match_recipe(task, arch);
  EXPECT_EQ(match.recipe, "recurrent") << match.why;
  Json params = match.safe;
  params.update(changes);
  auto made = instantiate(task, match, params);
  EXPECT_TRUE(made) << name << ": " << match.why;
  if (!made) return {};
  for (const Error& error : check_plan(made->plan, task)) ADD_FAILURE() << name << error.text();
  return *made;
}

// The sources of the kernels that walk along the steps.
std::vector<std::string> walks(const KernelProgram& program) {
  std::vector<std::string> sources;
  for (const auto& [file, source] : program.sources)
    if (source.find("// The steps of ") != std::string::npos) sources.push_back(source);
  return sources;
}

std::string steps_of(const KernelProgram& program) {
  return to_json(program.plan).at("steps").dump();
}

TEST(Recurrent, EachLayerHasAKernel) {
  EXPECT_EQ(walks(recurrent_program("recurrent_last_step")).size(), 1u);
  EXPECT_EQ(walks(recurrent_program("recurrent_plain")).size(), 2u);
  EXPECT_EQ(walks(recurrent_program("recurrent_both_sides")).size(), 2u);
  EXPECT_EQ(walks(recurrent_program("recurrent_last_states")).size(), 2u);
}

TEST(Recurrent, BothDirectionsShareALaunch) {
  const KernelProgram program = recurrent_program("recurrent_both_sides");
  for (const std::string& source : walks(program)) {
    EXPECT_THAT(source, HasSubstr("kSides = 2"));
    EXPECT_THAT(source, HasSubstr("weight = blockIdx.y == 0 ? weight_0 : weight_1"));
  }
  const Json plan = to_json(program.plan);
  for (const Json& step : plan.at("steps")) {
    const bool walk = step.value("kernel", "").starts_with("steps");
    if (walk) {
      EXPECT_EQ(step.at("grid")[1], 2);
    }
  }
  EXPECT_THAT(walks(recurrent_program("recurrent_plain")).at(0), HasSubstr("kSides = 1"));
}

TEST(Recurrent, InitialStatesAreReadInPlace) {
  for (const std::string& source : walks(recurrent_program("recurrent_both_sides")))
    EXPECT_THAT(source, HasSubstr("const Element* first, const Element* first_cell"));
  const auto sources = walks(recurrent_program("recurrent_last_step"));
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_THAT(sources[0], HasSubstr("const Element* const first = nullptr"));
}

TEST(Recurrent, AxesFollowTheLayer) {
  EXPECT_THAT(walks(recurrent_program("recurrent_both_sides")).at(0),
              HasSubstr("at = row * steps + time"));
  EXPECT_THAT(walks(recurrent_program("recurrent_last_states")).at(0),
              HasSubstr("at = time * batch + row"));
}

// The shared memory of a cluster holds the weights of an LSTM of 256 states, but not of 640.
TEST(Recurrent, TheSizeDecidesHowManyCtasShareTheStates) {
  const std::string small = steps_of(recurrent_program("recurrent_last_step"));
  EXPECT_THAT(small, Not(HasSubstr("\"cluster\":[")));
  EXPECT_THAT(small, Not(HasSubstr("\"cooperative\":true")));
  EXPECT_THAT(steps_of(recurrent_program("recurrent_cluster")), HasSubstr("\"cluster\":[8,1,1]"));
  const std::string grid = steps_of(recurrent_program("recurrent_grid"));
  EXPECT_THAT(grid, HasSubstr("\"cooperative\":true"));
  EXPECT_THAT(grid, Not(HasSubstr("\"cluster\":[")));
}

TEST(Recurrent, OtherGpusHaveNoClusters) {
  const KernelProgram program = recurrent_program("recurrent_cluster", "sm_80");
  EXPECT_THAT(to_json(program.plan).dump(), Not(HasSubstr("\"cluster\":[")));
  EXPECT_THAT(walks(program).at(0), Not(HasSubstr("kCtas = 8")));
}

TEST(Recurrent, ParametersThatDoNotFitAreRefused) {
  const Task task = golden_task("recurrent_cluster");
  const RecipeMatch hopper = match_recipe(task, "sm_90a");
  for (const Json& change : {Json{{"lanes", 8}, {"rows", 16}}, Json{{"ctas", 3}}}) {
    Json params = hopper.safe;
    params.update(change);
    EXPECT_FALSE(instantiate(task, hopper, params)) << change.dump();
  }
  for (const int ctas : {0, 1, 2, 4, 8}) {
    const KernelProgram program =
        recurrent_program("recurrent_cluster", "sm_90a", {{"ctas", ctas}, {"rows", 4}});
    EXPECT_THAT(walks(program).at(0), HasSubstr("kRows = 4"));
  }
}

// Dropout between layers and projections stay with PyTorch.
TEST(Recurrent, OtherLayersAreRefusedByName) {
  Task task = golden_task("recurrent_both_sides");
  for (Node& node : task.graph.nodes)
    if (node.op == "aten.lstm.input") {
      node.args[5] = 0.5;
      node.args[6] = true;
    }
  EXPECT_THAT(match_recipe(task, "sm_90a").why, HasSubstr("aten.lstm.input"));
}

}  // namespace
}  // namespace cutegen::recipes
