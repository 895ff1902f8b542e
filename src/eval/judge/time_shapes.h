// SPDX-License-Identifier: Apache-2.0
// Times a program or a third-party solution at each weighted shape of a task. The headline time is
// the weighted geometric mean of the times.
//
// Contract: both functions begin with the official shape (the sizes in the task file) and stop at
// the first failure. If a shape is too large for the GPU or takes too long, the program has no
// time, because means over different shapes are not comparable; the detail names this shape.
// ShapesTimed::outcome describes the kernels at the official shape only, because the profile shows
// only the official shape.
//
// Example: CG_TRY(ShapesTimed t, time_shapes(prepared, [&](const PreparedShape& s) { ... }));
#pragma once

#include "eval/rungs/timing.h"

namespace cutegen::eval {

using TimeShape = std::function<Result<TimingOutcome>(const PreparedShape&)>;

struct ShapesTimed {
  TimingOutcome outcome;           // outcome.timing contains the headline time
  std::optional<Timing> official;  // the timing at the official shape
};
Result<ShapesTimed> time_shapes(const Prepared& prepared, const TimeShape& time);

using TimeCase = std::function<Result<TimingOutcome>(const ShapeCase&)>;
// `shapes` begins with the official shape.
Result<ShapesTimed> time_cases(const std::vector<const ShapeCase*>& shapes, const TimeCase& time);

}  // namespace cutegen::eval
