// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/repeat_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cutegen::engine {
namespace {

TEST(RepeatInterval, IsStudentsIntervalForOneTask) {
  // Logarithms 0, 1 and 2: mean 1, deviation 1, two degrees of freedom.
  auto interval = repeat_interval({{1, std::exp(1.0), std::exp(2.0)}});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(std::log(interval->low), 1 - 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(std::log(interval->high), 1 + 4.303 / std::sqrt(3.0), 1e-9);
}

TEST(RepeatInterval, NeedsTwoRepeatsOfEachTask) {
  EXPECT_FALSE(repeat_interval({}));
  EXPECT_FALSE(repeat_interval({{1.5}}));
  EXPECT_FALSE(repeat_interval({{1.5, 1.6}, {1.2}}));
  auto equal = repeat_interval({{2, 2, 2}, {8, 8}});
  ASSERT_TRUE(equal);
  EXPECT_DOUBLE_EQ(equal->low, 4);
  EXPECT_DOUBLE_EQ(equal->high, 4);
}

TEST(RepeatInterval, ContainsTheTrueMeanInMostSeries) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> first(0.3, 0.1), second(0.7, 0.4);
  int contained = 0;
  constexpr int kSeries = 2000;
  for (int i = 0; i < kSeries; ++i) {
    std::vector<std::vector<double>> tasks(2);
    for (int k = 0; k < 4; ++k) {
      tasks[0].push_back(std::exp(first(random)));
      tasks[1].push_back(std::exp(second(random)));
    }
    const RatioInterval interval = *repeat_interval(tasks);
    contained += interval.low <= std::exp(0.5) && std::exp(0.5) <= interval.high;
  }
  EXPECT_GT(contained, 0.94 * kSeries);
  EXPECT_LT(contained, 0.995 * kSeries);
}

}  // namespace
}  // namespace cutegen::engine
