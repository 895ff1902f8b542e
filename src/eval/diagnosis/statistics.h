// SPDX-License-Identifier: Apache-2.0
// Statistics of a few timed runs: the median with its interval, and when enough pairs of runs are
// done.
//
// Contract: intervals come from the sign test, so they hold for every distribution. They are
// interpolated between order statistics (Hettmansperger and Sheather, 1986) and contain the true
// median in `level` of all cases. With too few samples the interval is the whole range. Samples
// count as independent.
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
// Of at least one sample.
Median median_of(std::vector<double> samples, double level = 0.95);

// The median of other[i] / own[i] over alternating runs, computed from logarithms.
Median speedup_of(const std::vector<double>& own, const std::vector<double>& other,
                  double level = 0.95);

// The rule looks several times: after `least` pairs, after twice as many, and so on. It therefore
// uses a higher level for each look, so that the interval contains the truth in 95% of all series
// (docs/measurements/paired_timing.md).
struct PairRule {
  int least = 8;            // pairs before anything is decided
  int most = 1024;          // then it is enough
  double level = 0.97;      // of the interval
  double precise = 0.005;   // half the interval, as a share: then it is known well
  double slower = 0.995;    // level at which a slower program is dropped
  bool drop_losers = true;  // stop as soon as this one is surely the slower one
};
// Why no more pairs are needed ("slower", "precise", "enough"); nothing if more are needed.
std::optional<std::string> enough_pairs(const PairRule& rule, const std::vector<double>& own,
                                        const std::vector<double>& other);

}  // namespace cutegen::eval
