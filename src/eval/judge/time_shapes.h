// SPDX-License-Identifier: Apache-2.0
// The rung timing of a task with several weighted shapes: each is timed, the headline is their
// weighted geometric mean.
//
// Contract: shapes are timed in order, the official one first. The first that fails ends the rung.
// A shape that cannot be timed (too large for the GPU, out of budget) leaves the program without a
// time, since a mean over fewer shapes could not be compared; the detail names it. Kernels are
// those of the official shape, for its profile.
//
// Example: CG_TRY(ShapesTimed t, time_shapes(prepared, [&](const PreparedShape& s) { ... }));
#pragma once

#include "eval/rungs/timing.h"

namespace cutegen::eval {

using TimeShape = std::function<Result<TimingOutcome>(const PreparedShape&)>;

struct ShapesTimed {
  TimingOutcome outcome;           // timing: the headline
  std::optional<Timing> official;  // of the official shape alone
};
Result<ShapesTimed> time_shapes(const Prepared& prepared, const TimeShape& time);

}  // namespace cutegen::eval
