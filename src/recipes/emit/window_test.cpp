// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Case {
  Task task;
  RecipeMatch match;
  explicit Case(const std::string& name) : task(golden_task(name)), match(match_recipe(task)) {
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
  const Case line("pool_line");
  EXPECT_EQ(line.match.safe.at("columns"), 2048);
  EXPECT_EQ(line.match.safe.at("rows"), 1);
  const std::string source = line.source();
  EXPECT_THAT(source, HasSubstr("constexpr int kTall = 1;"));
  EXPECT_THAT(source, HasSubstr("kKernel1 = 1;"));
  EXPECT_THAT(source, HasSubstr("kKernel2 = 4;"));
}

TEST(Windows, WindowsThatDoNotOverlapNeedNoTile) {
  const Case apart("pool_apart");
  EXPECT_EQ(apart.match.safe.at("columns"), 0);
  EXPECT_THAT(apart.source(), Not(HasSubstr("__shared__")));
  EXPECT_THAT(apart.source({{"columns", 64}}), HasSubstr("__shared__ float tile"));
}

TEST(Windows, ATileOfADepthwiseConvolutionRequiresItsKernel) {
  const Case depthwise("conv_depthwise");
  EXPECT_EQ(depthwise.match.safe.at("columns"), 256);
  EXPECT_EQ(depthwise.match.safe.at("rows"), 16);
  auto program = depthwise.program();
  ASSERT_TRUE(program) << program.error().text();
  const std::string plan = to_json(program->plan).dump();
  EXPECT_THAT(plan, HasSubstr(",2) == 3"));
  EXPECT_THAT(plan, HasSubstr(",3) == 3"));
  EXPECT_THAT(depthwise.source({{"columns", 0}}), HasSubstr("kChannels = 1;"));
}

TEST(Windows, RowsNeedAnAxisBeforeTheLast) {
  auto refused = Case("pool_line").program({{"rows", 2}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot be combined"));
}

}  // namespace
}  // namespace cutegen::recipes
