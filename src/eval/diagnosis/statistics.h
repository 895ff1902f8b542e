// SPDX-License-Identifier: Apache-2.0
// What a few timed runs say: a median and its interval, and when pairs of runs are enough.
//
// Contract: intervals are those of the sign test, whatever the distribution, interpolated between
// order statistics (Hettmansperger and Sheather, 1986), so that they hold the true median in
// `level` of all cases; with too few samples for that they are the whole range. Samples count as
// independent.
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

// other[i] / own[i] of runs that were timed in turn; a median of ratios, by their logarithms.
Median speedup_of(const std::vector<double>& own, const std::vector<double>& other,
                  double level = 0.95);

// The interval is asked for at a higher level than it has in the end, since the rule looks several
// times: after `least` pairs, twice as many, and so on. So it holds the truth in 95% of all series
// (docs/measurements/paired_timing.md).
struct PairRule {
  int least = 8;            // pairs before anything is decided
  int most = 1024;          // then it is enough
  double level = 0.97;      // of the interval
  double precise = 0.005;   // half the interval, as a share: then it is known well
  double slower = 0.995;    // level at which a loser is let go
  bool drop_losers = true;  // stop as soon as this one is surely the slower one
};
// Why no more pairs are wanted ("slower", "precise", "enough"); nothing while more are.
std::optional<std::string> enough_pairs(const PairRule& rule, const std::vector<double>& own,
                                        const std::vector<double>& other);

}  // namespace cutegen::eval
