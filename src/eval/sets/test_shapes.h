// SPDX-License-Identifier: Apache-2.0
// Shapes that correctness is judged on, and the input families of each.
//
// Contract: is_test_shape() leaves out timed shapes that are too large to simulate. families_for()
// gives all families to small and odd shapes, two to shapes that cost more, and to a proposed test
// with values of its own only these.
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

}  // namespace cutegen::eval
