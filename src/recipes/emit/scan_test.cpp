// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct ScanCase {
  Task task;
  RecipeMatch match;
  explicit ScanCase(const std::string& name)
      : task(golden_task(name)), match(match_recipe(task, "sm_80")) {
    EXPECT_EQ(match.recipe, "scan") << match.why;
  }
  KernelProgram program(const Json& changes = Json::object()) const {
    Json params = match.safe;
    params.update(changes);
    auto made = instantiate(task, match, params);
    EXPECT_TRUE(made) << made.error().text();
    return made ? *made : KernelProgram{};
  }
  std::string source(const Json& changes = Json::object()) const {
    const KernelProgram made = program(changes);
    return made.sources.empty() ? "" : made.sources.begin()->second;
  }
  bool takes(const Json& changes) const {
    Json params = match.safe;
    params.update(changes);
    return bool(instantiate(task, match, params));
  }
};

std::vector<std::string> kernels_of(const KernelProgram& program) {
  std::vector<std::string> names;
  const Json plan = to_json(program.plan);
  for (const Json& step : plan.at("steps")) names.push_back(step.at("kernel"));
  return names;
}

TEST(Scan, TheKernelReadsFromTheEndInsteadOfFlipping) {
  const std::string text = ScanCase("scan_reversed").source();
  EXPECT_THAT(text, HasSubstr("at = steps - 1 - j"));
  EXPECT_THAT(text, HasSubstr("const int v = kVector - 1 - n;"));
  EXPECT_THAT(text, HasSubstr("scan_row<cutegen::Add, kWidth, false>"));
  EXPECT_THAT(text, HasSubstr("x_value * mask_value"));  // in the same kernel
}

TEST(Scan, ZerosBeforeAllButTheLastMakeItExclusive) {
  EXPECT_THAT(ScanCase("scan_exclusive").source(),
              HasSubstr("scan_row<cutegen::Add, kWidth, true>"));
}

TEST(Scan, OnesBeforeASumDoNot) {
  const ScanCase c("scan_filled");
  EXPECT_THAT(c.source(), Not(HasSubstr(", true>")));
  EXPECT_EQ(c.program().sources.size(), 3U);  // a sum in scratch, ones, and the sum behind them
}

TEST(Scan, TeamsShareTheAxisIfItIsNotTheInnermost) {
  const ScanCase c("scan_columns");
  EXPECT_THAT(c.source(), HasSubstr("scan_column<cutegen::Multiply, kRows, kColumns, false>"));
  EXPECT_THAT(c.source({{"columns", 128}, {"threads", 128}, {"parts", 1}}),
              Not(HasSubstr("shared[2]")));
}

TEST(Scan, FewRowsAreSharedAmongCtas) {
  const ScanCase c("scan_one_row");
  EXPECT_GT(c.match.safe.at("parts"), 1);
  EXPECT_THAT(kernels_of(c.program()), ElementsAre("totals", "scan"));
  EXPECT_THAT(c.source(), HasSubstr("carry_of_warp<cutegen::Add>"));
  EXPECT_THAT(kernels_of(c.program({{"parts", 1}})), ElementsAre("scan"));
  EXPECT_FALSE(c.takes({{"width", 32}}));  // totals of CTAs need one row for each CTA
}

TEST(Scan, AFewLanesTakeAShortRow) {
  const ScanCase c("scan_short");
  EXPECT_EQ(c.match.safe.at("width"), 4);
  EXPECT_THAT(c.source(), HasSubstr("scan_row<cutegen::Largest"));
  EXPECT_THAT(c.source(), Not(HasSubstr("__shared__")));
}

TEST(Scan, WidthIsAGroupOfLanesOrTheCta) {
  const ScanCase c("scan_reversed");
  EXPECT_TRUE(c.takes({{"width", 512}, {"threads", 512}, {"items", 2}}));
  EXPECT_FALSE(c.takes({{"width", 512}, {"threads", 512}}));  // one warp adds up 32 totals
  EXPECT_FALSE(c.takes({{"width", 256}, {"threads", 512}}));
  EXPECT_TRUE(c.takes({{"width", 16}}));
}

TEST(Scan, OtherReductionsAreStagesOfTheirOwn) {
  const ScanCase softmax("scan_after_softmax");
  EXPECT_THAT(kernels_of(softmax.program()), ElementsAre("reduction_1", "scan_2", "reduction_3"));
  EXPECT_THAT(kernels_of(ScanCase("scan_of_scan").program()), ElementsAre("scan_1", "scan_2"));
  EXPECT_THAT(kernels_of(ScanCase("scan_both_ways").program()), ElementsAre("scan_1", "scan_2"));
}

TEST(Scan, PositionsOfMaximaAreAScanInTheSameKernel) {
  EXPECT_THAT(kernels_of(ScanCase("scan_places").program()), ElementsAre("scan"));
}

}  // namespace
}  // namespace cutegen::recipes
