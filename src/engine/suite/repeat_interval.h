// SPDX-License-Identifier: Apache-2.0
// Computes the confidence interval of a strategy's result from the spread of its repetitions.
//
// Contract: the input has a list of ratios for each task, one ratio per repetition. The strategy's
// result is the geometric mean of the lists' geometric means. The function repeat_interval()
// returns the result's 95% confidence interval. It uses Student's t on the logarithms, with the
// degrees of freedom of Welch and Satterthwaite. Only the spread within each task counts, because
// the tasks are fixed and only the repetitions are random. Without tasks, or if a task has fewer
// than two repetitions, the function returns nullopt.
//
// Example: auto interval = repeat_interval({{1.20, 1.25}, {1.10, 1.14}});
#pragma once

#include <optional>
#include <vector>

namespace cutegen::engine {

struct RatioInterval {
  double low = 0, high = 0;
};
std::optional<RatioInterval> repeat_interval(const std::vector<std::vector<double>>& tasks);

}  // namespace cutegen::engine
