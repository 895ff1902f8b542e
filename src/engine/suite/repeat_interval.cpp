// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/repeat_interval.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cutegen::engine {
namespace {

// The 0.975 quantile of Student's t, for 1 to 30 degrees of freedom.
constexpr std::array kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

// Rounds the degrees of freedom down, which widens the interval.
double student_quantile(double degrees) {
  if (degrees < kStudent.size() + 1) return kStudent.at(size_t(std::max(degrees, 1.0)) - 1);
  return 1.96 + 2.5 / std::floor(degrees);
}

struct Spread {
  double mean = 0, variance = 0;  // of the logarithms; of their mean
};

Spread spread_of(const std::vector<double>& ratios) {
  const auto count = double(ratios.size());
  Spread out;
  for (double ratio : ratios) out.mean += std::log(ratio) / count;
  for (double ratio : ratios)
    out.variance += std::pow(std::log(ratio) - out.mean, 2) / (count - 1) / count;
  return out;
}

}  // namespace

std::optional<RatioInterval> repeat_interval(const std::vector<std::vector<double>>& tasks) {
  double mean = 0, variance = 0, weighted = 0;
  for (const std::vector<double>& ratios : tasks) {
    if (ratios.size() < 2) return std::nullopt;
    const Spread spread = spread_of(ratios);
    mean += spread.mean;
    variance += spread.variance;
    weighted += spread.variance * spread.variance / double(ratios.size() - 1);
  }
  if (tasks.empty()) return std::nullopt;
  const auto count = double(tasks.size());
  const double degrees = weighted > 0 ? variance * variance / weighted : 1;
  const double half = student_quantile(degrees) * std::sqrt(variance) / count;
  return RatioInterval{.low = std::exp(mean / count - half), .high = std::exp(mean / count + half)};
}

}  // namespace cutegen::engine
