// SPDX-License-Identifier: Apache-2.0
// Statistics of timed runs: the median with its confidence interval, and the rule that ends a
// series of paired runs.
//
// Contract: confidence intervals come from the sign test, so they are valid for every distribution
// of times. median_of() interpolates the ends of an interval between order statistics
// (Hettmansperger and Sheather, 1986). An interval contains the true median with probability
// `level`. If there are too few samples, the interval is the range of all samples. Samples must be
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
// Returns the median of at least one sample, with its confidence interval.
Median median_of(std::vector<double> samples, double level = 0.95);

// Returns the median of other[i] / own[i] with its interval, computed from logarithms. own[i] and
// other[i] must be a pair of runs.
Median speedup_of(const std::vector<double>& own, const std::vector<double>& other,
                  double level = 0.95);

// Says when to end a series of paired runs. The evaluator checks the rule after `least` pairs,
// after 2 x `least`, after 4 x `least`, and so on. Each check uses a level above 95%, so that
// despite the repetition, the final interval contains the true speedup in 95% of all series
// (docs/measurements/paired_timing.md).
struct PairRule {
  int least = 8;            // number of pairs before the first check
  int most = 1024;          // number of pairs at which the series ends
  double level = 0.97;      // confidence level of the speedup's interval at each check
  double precise = 0.005;   // end the series if (half the interval) / speedup is at most this
  double slower = 0.995;    // end the series if the program is slower with this confidence
  bool drop_losers = true;  // whether a slower program ends the series
};
// Returns the reason to end the series ("slower", "precise", "enough"), or nullopt to continue.
std::optional<std::string> enough_pairs(const PairRule& rule, const std::vector<double>& own,
                                        const std::vector<double>& other);

}  // namespace cutegen::eval
