// SPDX-License-Identifier: Apache-2.0
// Shapes that correctness is judged on, and the input families of each.
//
// Contract: is_test_shape() leaves out timed shapes that are too large to simulate. families_for()
// gives all families to small and odd shapes, two to shapes that cost more, and to a proposed test
// with values of its own only these. WorkLimit says how much work a simulator does for one shape.
//
// Example: if (is_test_shape(shape)) for (auto& family : families_for(shape, families, salt)) ...
#pragma once

#include <string>
#include <vector>

#include "core/task.h"
#include "core/weighted.h"

namespace cutegen::eval {

inline constexpr double kMostTestFlops = 1e8;
inline constexpr int64_t kMostTestElements = int64_t{3} << 19;

int64_t elements_of(const ShapeCase& shape);
// Shapes that correctness is judged on: all but timed ones that are too large to simulate.
bool is_test_shape(const ShapeCase& shape);
// The input families that a shape is judged on: all of them, or for long and derived shapes, and
// where the work is much, `outliers` and one more that `salt` picks.
std::vector<std::string> families_for(const ShapeCase& shape, const std::vector<std::string>& all,
                                      uint64_t salt);

// Limits the work of a test shape on a simulator: to a fixed limit or, if larger, the work of the
// shapes that cutegen found for the module.
class WorkLimit {
 public:
  explicit WorkLimit(const Task& task);
  bool permits(const ShapeCase& shape) const;
  std::string text() const;  // "100 MFLOP and 1.57 million elements"

 private:
  double flops_;
  int64_t elements_, light_elements_;
};

// Removes the user's test shapes that are too much work for a simulator. A note of the task names
// each of them.
void drop_large_test_shapes(Task& task);

}  // namespace cutegen::eval
