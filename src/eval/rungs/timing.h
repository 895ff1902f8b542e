// SPDX-License-Identifier: Apache-2.0
// The rung timing: models the time of the official shape from a sample of its CTAs.
//
// Contract: the time is the sum of the modelled kernel times (prepare included), with the origin
// `modelled` and the sampling error as its interval. A secret seed draws the sample, so a program
// cannot do less work in the counted CTAs. With `lines`, it adds counters by source line and
// remarks
// (eval/diagnosis/diagnose.h). It compares what the blocks write with the truth if that is possible
// (eval/rungs/official_check.h). Over budget there is no time but a reason; a block that takes far
// longer than the task's work has `failed`. A modelled time below the roofline, and even below the
// floor, is reported as it is, unless the program omits most of the traffic.
//
// Example: CG_TRY(TimingOutcome t, time_official(evaluation, {&coverage, id}));
#pragma once

#include "core/floor.h"
#include "eval/rungs/coverage.h"
#include "eval/rungs/prepare.h"

namespace cutegen::eval {

struct TimingOutcome {
  RungEnd end;
  RungResult result = RungResult::passed;
  std::optional<Timing> timing;
  std::vector<KernelProfile> kernels;
  std::vector<std::string> marks;
  std::string official_not_compared;  // why no value of the official shape was compared
};

inline TimingOutcome failed(RungEnd end) {
  TimingOutcome out;
  out.result = RungResult::failed;
  out.end = std::move(end);
  return out;
}

struct OfficialQuestion {
  const Coverage* coverage = nullptr;  // of the runs that were compared; null: only a time is asked
  std::string program_id;
  bool lines = false;
  const PreparedShape* shape = nullptr;  // another one than the official
  bool many_blocks = false;              // draw as many blocks as allowed at once
};

// Adds the figures that accompany every time: floor, reachable bound, roofline.
void set_bounds(Timing& timing, const Roofline& roofline);
Result<TimingOutcome> time_official(const Evaluation& e, const OfficialQuestion& asked);
// Address space that the large buffers of any shape of this task may need.
int64_t large_addresses(const Task& task);

}  // namespace cutegen::eval
