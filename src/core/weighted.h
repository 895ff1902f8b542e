// SPDX-License-Identifier: Apache-2.0
// Weighted shapes: one headline for a task that its user runs at several sizes.
//
// Contract: a program is timed at the official shape and at every shape of the side file whose
// weight is over 0. Headlines are weighted geometric means. The mean of intervals has the means of
// their ends: its width is the weighted sum of the widths (in logarithms), which is at least what
// independent errors give, and exact for errors that move together. A baseline or a mode that one
// shape lacks is not in the headline.
//
// Example: Timing t = headline_of({{&task.official(), official_timing}, {&wide, wide_timing}});
#pragma once

#include <vector>

#include "core/certificate.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {

// The official shape, and the user's own shapes that have a weight.
[[nodiscard]] bool is_timed(const ShapeCase& shape);
// All of them, in the order of the task: the official one comes first.
[[nodiscard]] std::vector<const ShapeCase*> timed_shapes(const Task& task);

struct Weighted {
  double weight = 1, value = 0;
};
// 0 if a value is not positive, or no weight is.
[[nodiscard]] double geometric_mean(const std::vector<Weighted>& values);

struct ShapeTimed {
  const ShapeCase* shape = nullptr;
  Timing timing;
};
// Of one shape: its timing. Of several: the means, with each of them in `shapes`.
[[nodiscard]] Timing headline_of(const std::vector<ShapeTimed>& timed);

// The modes that all shapes have, each with its means.
[[nodiscard]] std::vector<CertifiedMode> headline_modes(const std::vector<CertifiedShape>& shapes);

}  // namespace cutegen
