// SPDX-License-Identifier: Apache-2.0
// Finds the elements of the inputs from which the reference computes one output element.
//
// Contract: elements_behind() follows the traced graph backwards through pointwise operators,
// broadcasts, reductions, products, convolutions and windows, and operators that only reorder axes.
// The result names every input, parameter or buffer that the element depends on. If the graph does
// not show on which elements of a tensor the output element depends (for example, after a reshape),
// the tensor has no region. A region contains all elements on which the output element depends, and
// possibly others. Its ranges lie inside the tensor at the given shape.
//
// Example: out = (x @ w.t()).relu() -> elements_behind(task, shape, "out", {3, 5}) is
//   {"x": {[3, 3], [0, k - 1]}, "w": {[5, 5], [0, k - 1]}}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/task.h"

namespace cutegen::eval {

struct IndexRange {
  int64_t low = 0, high = 0;  // both included
  bool operator==(const IndexRange&) const = default;
};
using Region = std::vector<IndexRange>;  // one range per axis

std::map<std::string, std::optional<Region>> elements_behind(const Task& task,
                                                             const ShapeCase& shape,
                                                             const std::string& output,
                                                             const std::vector<int64_t>& at);

}  // namespace cutegen::eval
