// SPDX-License-Identifier: Apache-2.0
#include "search/lines.h"

#include <gtest/gtest.h>

namespace cutegen::search {
namespace {

Kept kept(const std::string& id, double ns) {
  return {.id = id, .timing = Timing{.shape = "official", .time_ns = ns}};
}

Lines begun(int chains, int64_t budget, Start start = Start::scratch) {
  StrategySettings settings;
  settings.budget.evaluations = budget;
  settings.agents = AgentSettings{.start = start, .chains = chains};
  Lines lines;
  lines.begin(settings, {"tiles"}, "matmul");
  return lines;
}

TEST(Lines, ShareHalfOfTheBudget) {
  Lines lines = begun(2, 40);
  EXPECT_EQ(lines.now().approach, "tiles");
  lines.now().evaluations = 9;
  EXPECT_FALSE(lines.is_over());
  lines.now().evaluations = 10;
  EXPECT_TRUE(lines.is_over());
  ASSERT_TRUE(lines.next(std::nullopt));
  EXPECT_EQ(lines.number(), 2u);
  EXPECT_EQ(lines.now().approach, "");
}

TEST(Lines, TheOneOfTheBestProgramContinues) {
  Lines lines = begun(2, 40);
  lines.now().take(kept("c1", 10), false, 0.01);
  lines.now().misses = 3;
  EXPECT_TRUE(lines.is_over());
  ASSERT_TRUE(lines.next(kept("c1", 10)));
  EXPECT_FALSE(lines.in_last_phase());
  ASSERT_TRUE(lines.next(kept("c1", 10)));
  EXPECT_TRUE(lines.in_last_phase());
  EXPECT_EQ(lines.number(), 1u);
  EXPECT_EQ(lines.now().misses, 0);
  lines.now().evaluations = 100;
  EXPECT_FALSE(lines.is_over()) << "the run's plateau ends the last phase";
  EXPECT_FALSE(begun(1, 40).next(std::nullopt));
}

TEST(Lines, WithARecipeThereIsOne) {
  EXPECT_TRUE(begun(3, 40, Start::recipe).in_last_phase());
  EXPECT_FALSE(begun(3, 40).in_last_phase());
}

TEST(Lines, KeepTheirBestAndCountMisses) {
  Lines lines = begun(2, 40);
  Line& line = lines.now();
  line.fixes = 2;
  EXPECT_TRUE(line.take(kept("c1", 10), false, 0.01));
  EXPECT_EQ(line.fixes, 0);
  EXPECT_FALSE(line.take(kept("c2", 9.99), false, 0.01));
  EXPECT_FALSE(line.take({.id = "c3"}, false, 0.01)) << "no time is known";
  EXPECT_EQ(line.misses, 2);
  EXPECT_TRUE(line.take(kept("c4", 5), false, 0.01));
  EXPECT_EQ(line.misses, 0);
  EXPECT_EQ(line.best->id, "c4");
}

TEST(Lines, EndAfterTwoFirstProgramsThatStayWrong) {
  Lines lines = begun(1, 40);
  lines.now().give_up_candidate();
  EXPECT_FALSE(lines.is_over());
  lines.now().give_up_candidate();
  EXPECT_TRUE(lines.is_over());
  EXPECT_EQ(lines.now().misses, 0);
}

}  // namespace
}  // namespace cutegen::search
