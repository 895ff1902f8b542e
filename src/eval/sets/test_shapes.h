// SPDX-License-Identifier: Apache-2.0
// Selects the shapes at which the evaluator judges correctness, and the input families (input
// distributions) for each shape.
//
// Contract: is_test_shape() excludes timed shapes that are too large for the simulator.
// families_for() returns all families for most shapes, two families for derived shapes and for
// shapes with much work, and only `ranged` for a proposed test with value ranges. WorkLimit limits
// a shape's work on the simulator.
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
// True if the evaluator judges programs at the shape. False only for timed shapes that are too
// large for the simulator.
bool is_test_shape(const ShapeCase& shape);
// Returns all families for most shapes. For derived shapes and other shapes with much work, returns
// `outliers` and a second family, which `salt` picks.
std::vector<std::string> families_for(const ShapeCase& shape, const std::vector<std::string>& all,
                                      uint64_t salt);

// Limits the work of a test shape on the simulator. The limit is a constant or, if larger, the work
// of the test shapes that cutegen chose for the task. For an sm_90a program, the limits on FLOPs
// and elements are higher, because the simulator executes wgmma fast and the tiles of wgmma are
// large.
class WorkLimit {
 public:
  explicit WorkLimit(const Task& task, bool sm_90a = false);
  bool permits(const ShapeCase& shape) const;
  std::string text() const;  // such as "100 MFLOP and 1.57 million elements"

 private:
  double flops_;
  int64_t elements_, light_elements_;
};

// Removes the user's test shapes that exceed WorkLimit, and adds a note to the task for each
// removed shape. If the task has shapes of the user and no test shape is left, returns an error
// that names the side file.
Result<void> drop_large_test_shapes(Task& task, const std::string& side_file);

}  // namespace cutegen::eval
