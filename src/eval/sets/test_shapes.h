// SPDX-License-Identifier: Apache-2.0
// The shapes at which correctness is judged, and the input families of each.
//
// Contract: is_test_shape() excludes timed shapes that are too large to simulate. families_for()
// returns all families for small and odd shapes, two families for shapes with much work, and only
// `ranged` for a proposed test with its own values. WorkLimit limits a shape's work on a simulator.
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
// Whether programs are judged at the shape. False only for timed shapes that are too large to
// simulate.
bool is_test_shape(const ShapeCase& shape);
// All input families. For derived shapes (long ones, and those from a program's tiles) and for
// other shapes with much work: `outliers` and one more family that `salt` picks.
std::vector<std::string> families_for(const ShapeCase& shape, const std::vector<std::string>& all,
                                      uint64_t salt);

// Limits the work of a test shape on a simulator. The limit is fixed, but at least the work of the
// shapes that cutegen found for the module. A program for sm_90a may do more FLOPs, because the
// simulator computes wgmma in blocks, and tiles of wgmma are large.
class WorkLimit {
 public:
  explicit WorkLimit(const Task& task, bool sm_90a = false);
  bool permits(const ShapeCase& shape) const;
  std::string text() const;  // "100 MFLOP and 1.57 million elements"

 private:
  double flops_;
  int64_t elements_, light_elements_;
};

// Removes the user's test shapes that exceed WorkLimit, each with a note of the task.
void drop_large_test_shapes(Task& task);

}  // namespace cutegen::eval
