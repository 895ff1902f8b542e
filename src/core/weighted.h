// SPDX-License-Identifier: Apache-2.0
// Weighted shapes: one headline figure for a task that its user runs at several sizes.
//
// Contract: a program is timed at the official shape and at every shape of the side file with a
// positive weight. Headlines are weighted geometric means. The ends of an interval are weighted
// geometric means, too: exact for fully correlated errors, and wider than necessary for independent
// ones. A headline omits a baseline or mode that some shape lacks.
//
// Example: Timing t = headline_of({{&task.official(), official_timing}, {&wide, wide_timing}});
#pragma once

#include <vector>

#include "core/certificate.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {

// The official shape, and the user's shapes with a positive weight.
bool is_timed(const ShapeCase& shape);
// In the order of the task; the official shape is first.
std::vector<const ShapeCase*> timed_shapes(const Task& task);

struct Weighted {
  double weight = 1, value = 0;
};
// 0 if any value is not positive, or if no weight is positive.
double geometric_mean(const std::vector<Weighted>& values);

struct ShapeTimed {
  const ShapeCase* shape = nullptr;
  Timing timing;
};
// The timing of a single shape, or the means of several, with each shape in `shapes`.
Timing headline_of(const std::vector<ShapeTimed>& timed);

// The modes in which all shapes were timed, each with its means over the shapes.
std::vector<CertifiedMode> headline_modes(const std::vector<CertifiedShape>& shapes);

}  // namespace cutegen
