// SPDX-License-Identifier: Apache-2.0
// Statistics of a few timed runs: the median with its interval, and the rule that says when enough
// pairs of runs are measured.
//
// Contract: intervals come from the sign test, so they hold for every distribution. They are
// interpolated between order statistics (Hettmansperger and Sheather, 1986) and contain the true
// median in `level` of all cases. With too few samples, the interval is the whole range. Samples
// must be independent.
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
// Needs at least one sample.
Median median_of(std::vector<double> samples, double level = 0.95);

// The median of other[i] / own[i] over alternating runs, computed from logarithms.
Median speedup_of(const std::vector<double>& own, const std::vector<double>& other,
                  double level = 0.95);

// The rule checks after `least` pairs, after twice as many, and so on. Because it checks
// repeatedly, each check uses a higher level, so that the interval contains the truth in 95% of all
// series (docs/measurements/paired_timing.md).
struct PairRule {
  int least = 8;            // number of pairs before the first check
  int most = 1024;          // number of pairs at which the series ends
  double level = 0.97;      // confidence level of the interval at each check
  double precise = 0.005;   // the series ends if half the interval is at most this share
  double slower = 0.995;    // the confidence at which the series drops a slower program
  bool drop_losers = true;  // end the series as soon as this program is certainly slower
};
// Why no more pairs are needed ("slower", "precise", "enough"); nothing if more are needed.
std::optional<std::string> enough_pairs(const PairRule& rule, const std::vector<double>& own,
                                        const std::vector<double>& other);

}  // namespace cutegen::eval
