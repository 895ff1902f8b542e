// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/result.h"

namespace cutegen::eval {
namespace {

// P(k <= B <= n - k) for B ~ Binomial(n, 1/2): the chance that the median lies between the k-th
// smallest and the k-th largest of n samples.
double coverage(size_t n, size_t k) {
  double chance = std::pow(0.5, double(n)), below = 0;
  for (size_t i = 0; i < k; ++i) {
    below += chance;
    chance *= double(n - i) / double(i + 1);
  }
  return 1 - 2 * below;
}

}  // namespace

Median median_of(std::vector<double> samples, double level) {
  CG_ASSERT(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  Median out;
  out.value = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  size_t k = 1;  // the largest k whose interval has at least this level
  while (k + 1 <= n / 2 && coverage(n, k + 1) >= level) ++k;
  const double here = coverage(n, k);
  out.low = samples[k - 1], out.high = samples[n - k];
  if (here < level || 2 * k >= n) return out;
  const double next = 2 * (k + 1) > n ? 0.0 : coverage(n, k + 1);
  const double share = (here - level) / (here - next);
  const double step = double(n - k) * share / (double(k) + double(n - 2 * k) * share);
  out.low += step * (samples[k] - samples[k - 1]);
  out.high -= step * (samples[n - k] - samples[n - k - 1]);
  return out;
}

Median speedup_of(const std::vector<double>& own, const std::vector<double>& other, double level) {
  CG_ASSERT(own.size() == other.size());
  std::vector<double> logs;
  logs.reserve(own.size());
  for (size_t i = 0; i < own.size(); ++i) logs.push_back(std::log(other[i] / own[i]));
  Median m = median_of(std::move(logs), level);
  return {.value = std::exp(m.value), .low = std::exp(m.low), .high = std::exp(m.high)};
}

std::optional<std::string> enough_pairs(const PairRule& rule, const std::vector<double>& own,
                                        const std::vector<double>& other) {
  const int count = int(own.size());
  int look = rule.least;
  while (look < count) look *= 2;
  if (look != count && count < rule.most) return std::nullopt;
  if (rule.drop_losers && speedup_of(own, other, rule.slower).high < 1) return "slower";
  const Median m = speedup_of(own, other, rule.level);
  if ((m.high - m.low) / 2 <= rule.precise * m.value) return "precise";
  if (count >= rule.most) return "enough";
  return std::nullopt;
}

}  // namespace cutegen::eval
