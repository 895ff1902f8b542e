// SPDX-License-Identifier: Apache-2.0
// Weighted shapes: computes one time (the headline time) for a task that the user runs at several
// sizes.
//
// Contract: the evaluator times a program at the official shape (the sizes in the task file) and at
// every shape of the side file that has a positive weight. The headline time is the weighted
// geometric mean of the shapes' times. The ends of the headline time's interval are the weighted
// geometric means of the ends of the shapes' intervals. The interval is exact if the shapes' errors
// are fully correlated, and too wide if they are independent. The headline omits every baseline and
// timing mode that is missing at any shape.
//
// Example: Timing t = headline_of({{&task.official(), official_timing}, {&wide, wide_timing}});
#pragma once

#include <string>
#include <vector>

#include "core/certificate.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {

// True for the official shape and for the user's shapes with a positive weight.
bool is_timed(const ShapeCase& shape);
// Returns the timed shapes in the task's order, the official shape first.
std::vector<const ShapeCase*> timed_shapes(const Task& task);

// Tells the user how to make a timed shape smaller, and in which file. Example: "use smaller sizes
// in softmax.py".
std::string advice_to_shrink(const Task& task, const ShapeCase& shape);

struct Weighted {
  double weight = 1, value = 0;
};
// Returns the weighted geometric mean, or 0 if a value is not positive or no weight is positive.
double geometric_mean(const std::vector<Weighted>& values);

struct ShapeTimed {
  const ShapeCase* shape = nullptr;
  Timing timing;
};
// Returns the timing of a single shape, or the means over several shapes with each shape's timing
// in Timing::shapes.
Timing headline_of(const std::vector<ShapeTimed>& timed);

// Returns the timing modes that have figures for all shapes, with the means over the shapes.
std::vector<CertifiedMode> headline_modes(const std::vector<CertifiedShape>& shapes);

}  // namespace cutegen
