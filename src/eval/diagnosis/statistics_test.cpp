// SPDX-License-Identifier: Apache-2.0
// Medians, their intervals, and the rule that ends a series of pairs.
#include "eval/diagnosis/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace cutegen::eval {
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

// Coverage of samples 10 and 22 of 31 is 97.1%, of 11 and 21 92.9%: 95% lies between.
TEST(MedianOf, LiesBetweenOrderStatistics) {
  std::vector<double> samples(31);
  std::iota(samples.begin(), samples.end(), 1);
  std::reverse(samples.begin(), samples.end());
  Median m = median_of(samples);
  EXPECT_EQ(m.value, 16);
  EXPECT_GT(m.low, 10);
  EXPECT_LT(m.low, 11);
  EXPECT_NEAR(m.low - 10, 22 - m.high, 1e-9);
  Median wide = median_of(samples, 0.99);
  EXPECT_LT(wide.low, m.low);
  EXPECT_GT(wide.high, m.high);
}

double held(size_t n, double level) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> skewed(1.0);
  constexpr int kTrials = 20000;
  int count = 0;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> samples(n);
    for (double& s : samples) s = skewed(random);
    Median m = median_of(samples, level);
    count += m.low <= std::log(2.0) && std::log(2.0) <= m.high;
  }
  return double(count) / kTrials;
}

TEST(MedianOf, TheIntervalHoldsTheMedianInAsManyCasesAsItSays) {
  for (size_t n : {8U, 9U, 16U, 20U, 31U, 64U}) EXPECT_NEAR(held(n, 0.95), 0.95, 0.012) << n;
  for (size_t n : {9U, 16U, 31U}) EXPECT_NEAR(held(n, 0.99), 0.99, 0.006) << n;
  EXPECT_NEAR(held(7, 0.99), 1 - std::pow(0.5, 6), 0.006);  // the interval is the range
}

TEST(SpeedupOf, IsTheMedianOfRatiosAndTurnsOverWithItsSides) {
  std::vector<double> own{10, 20, 10, 40, 10}, other{20, 40, 10, 120, 20};
  Median m = speedup_of(own, other);
  EXPECT_DOUBLE_EQ(m.value, 2);
  EXPECT_DOUBLE_EQ(m.low, 1);
  EXPECT_DOUBLE_EQ(m.high, 3);
  Median turned = speedup_of(other, own);
  EXPECT_DOUBLE_EQ(turned.value, 0.5);
  EXPECT_DOUBLE_EQ(turned.low, 1 / m.high);
}

std::vector<double> noisy(size_t n, double middle, double spread, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, spread);
  std::vector<double> out(n);
  for (double& x : out) x = middle * std::exp(noise(random));
  return out;
}

TEST(EnoughPairs, LetsALoserGoAfterTheFewest) {
  auto own = noisy(8, 110, 0.01, 1), other = noisy(8, 100, 0.01, 2);
  EXPECT_EQ(enough_pairs({}, own, other), "slower");
  own.resize(7), other.resize(7);
  EXPECT_EQ(enough_pairs({}, own, other), std::nullopt);
}

TEST(EnoughPairs, GoesOnUntilAWinnerIsKnownWell) {
  auto own = noisy(8, 90, 0.03, 3), other = noisy(8, 100, 0.03, 4);
  EXPECT_EQ(enough_pairs({}, own, other), std::nullopt);
  EXPECT_EQ(enough_pairs({}, noisy(8, 90, 0.001, 3), noisy(8, 100, 0.001, 4)), "precise");
  EXPECT_EQ(enough_pairs({}, noisy(12, 90, 0.001, 3), noisy(12, 100, 0.001, 4)), std::nullopt);
  EXPECT_EQ(enough_pairs({}, noisy(1024, 90, 0.2, 3), noisy(1024, 100, 0.2, 4)), "enough");
  PairRule certain;
  certain.drop_losers = false;
  EXPECT_EQ(enough_pairs(certain, noisy(8, 110, 0.03, 1), noisy(8, 100, 0.03, 2)), std::nullopt);
}

// Whole series under the rule: a program against itself, and against one that is 1% faster.
TEST(EnoughPairs, ASeriesHoldsTheTruthAndFindsOnePercent) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.01);
  for (double more : {0.0, 0.01}) {
    int held = 0, slower = 0;
    constexpr int kSeries = 1500;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<double> own, other;
      do {
        for (int k = 0; k < 8; ++k) {
          own.push_back((1 + more) * std::exp(noise(random)));
          other.push_back(std::exp(noise(random)));
        }
      } while (!enough_pairs({}, own, other));
      const Median m = speedup_of(own, other, PairRule().level);
      held += m.low <= 1 / (1 + more) && 1 / (1 + more) <= m.high;
      slower += m.high < 1;
    }
    EXPECT_NEAR(double(held) / kSeries, 0.95, 0.02) << more;
    if (more > 0) {
      EXPECT_GT(double(slower) / kSeries, 0.9);
    }
  }
}

}  // namespace
}  // namespace cutegen::eval
