// SPDX-License-Identifier: Apache-2.0
// The median of timed runs and its interval.
#include "eval/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace cutegen {
namespace {

TEST(MedianOf, IsTheMiddleAndItsIntervalTheRangeOfAFew) {
  Median one = median_of({5});
  EXPECT_EQ(one.value, 5);
  EXPECT_EQ(one.low, 5);
  EXPECT_EQ(one.high, 5);
  Median five = median_of({3, 1, 2, 9, 4});
  EXPECT_EQ(five.value, 3);
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 9);
  EXPECT_EQ(median_of({1, 2, 3, 100}).value, 2.5);
}

TEST(MedianOf, DropsTheEndsOfMany) {
  std::vector<double> samples(31);
  std::iota(samples.begin(), samples.end(), 1);
  std::reverse(samples.begin(), samples.end());
  Median m = median_of(samples);
  EXPECT_EQ(m.value, 16);
  EXPECT_EQ(m.low, 10);
  EXPECT_EQ(m.high, 22);
}

TEST(MedianOf, TheIntervalHoldsTheMedianInMoreThan95Of100Cases) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> skewed(1.0);
  constexpr int kTrials = 4000;
  for (size_t n : {6U, 9U, 20U, 31U}) {
    int held = 0;
    for (int t = 0; t < kTrials; ++t) {
      std::vector<double> samples(n);
      for (double& s : samples) s = skewed(random);
      Median m = median_of(samples);
      held += m.low <= std::log(2.0) && std::log(2.0) <= m.high;
    }
    EXPECT_GE(held, kTrials * 94 / 100) << n;
  }
}

}  // namespace
}  // namespace cutegen
