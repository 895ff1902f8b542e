// SPDX-License-Identifier: Apache-2.0
// The rung "timing" of a task with several weighted shapes: times each shape. The headline is the
// weighted geometric mean of the times.
//
// Contract: times the shapes in order, the official one first. The first failure ends the rung. If
// a shape cannot be timed (too large for the GPU, over budget), the program has no time, because a
// mean over fewer shapes is not comparable; the detail names the shape. outcome.kernels describes
// the kernels at the official shape only, because the profile shows that shape.
//
// Example: CG_TRY(ShapesTimed t, time_shapes(prepared, [&](const PreparedShape& s) { ... }));
#pragma once

#include "eval/rungs/timing.h"

namespace cutegen::eval {

using TimeShape = std::function<Result<TimingOutcome>(const PreparedShape&)>;

struct ShapesTimed {
  TimingOutcome outcome;           // timing: the headline
  std::optional<Timing> official;  // timing of the official shape alone
};
Result<ShapesTimed> time_shapes(const Prepared& prepared, const TimeShape& time);

}  // namespace cutegen::eval
