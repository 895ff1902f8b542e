// SPDX-License-Identifier: Apache-2.0
// Statistics of timed runs: the median with its confidence interval, and the rule that ends a
// series of paired runs.
//
// Contract: intervals come from the sign test, so they are valid for every distribution of times.
// The ends are interpolated between order statistics (Hettmansperger and Sheather, 1986). An
// interval contains the true median with probability `level`. With too few samples, the interval is
// the range of all samples. Samples must be independent.
//
// Example: Median m = median_of(samples_ns); use(m.low, m.high);
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cutegen::eval {

struct Median {
  double value = 0, low = 0, high = 0;
};
// Returns the median with its confidence interval. Needs at least one sample.
Median median_of(std::vector<double> samples, double level = 0.95);

// Returns the median of other[i] / own[i] with its interval, computed from logarithms. Run i of
// each program must be a pair.
Median speedup_of(const std::vector<double>& own, const std::vector<double>& other,
                  double level = 0.95);

// Says when to end a series of paired runs. The rule is checked after `least` pairs, after twice as
// many, and so on. Because of the repeated checks, each check uses a level above 95%, so that the
// final interval contains the true speedup in 95% of all series
// (docs/measurements/paired_timing.md).
struct PairRule {
  int least = 8;            // number of pairs before the first check
  int most = 1024;          // number of pairs at which the series ends
  double level = 0.97;      // confidence level of the interval at each check
  double precise = 0.005;   // end if half the interval is at most this share of the speedup
  double slower = 0.995;    // confidence that this program is slower, to end the series
  bool drop_losers = true;  // whether to end the series if this program is slower
};
// Returns the reason to end the series ("slower", "precise", "enough"), or nullopt to continue.
std::optional<std::string> enough_pairs(const PairRule& rule, const std::vector<double>& own,
                                        const std::vector<double>& other);

}  // namespace cutegen::eval
