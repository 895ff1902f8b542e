// SPDX-License-Identifier: Apache-2.0
// The confidence interval of a strategy's result, from the spread of its repeats.
//
// Contract: takes the ratios of each task's repeats. The result is a 95% interval of the geometric
// mean over the tasks of the geometric means over the repeats. Tasks are fixed and repeats are
// random, so only the spread within each task counts (Student's t on logarithms, with the degrees
// of freedom of Welch and Satterthwaite). Empty if there is no task, or if a task has fewer than
// two repeats.
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
