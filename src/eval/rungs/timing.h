// SPDX-License-Identifier: Apache-2.0
// The rung timing: models the time of the official shape from a sample of its CTAs.
//
// Contract: the time is the sum of the modelled kernel times (prepare included); its origin is
// `modelled`, and its interval is the sampling error. A secret seed draws the sample, so a program
// cannot do less work in the counted CTAs. With `lines`, the rung adds counters by source line and
// remarks (eval/diagnosis/explain.h). It compares what the blocks write with the truth, if possible
// (eval/rungs/sampled_check.h). If a run exceeds its budget, the rung gives a reason instead of a
// time. If one block takes far longer than the task's work needs, the program has `failed`. A
// modelled time below the roofline, or even below the floor, is reported as it is, unless the
// program omits most of the traffic.
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

struct TimingQuestion {
  // What compared runs executed; null: time the program without these checks.
  const Coverage* coverage = nullptr;
  std::string program_id;
  bool lines = false;
  const PreparedShape* shape = nullptr;  // a shape other than the official one
  bool many_blocks = false;              // begin with as many blocks as a sample may have
};

// Adds the figures that accompany every time: floor, reachable bound, roofline.
void set_bounds(Timing& timing, const Roofline& roofline);
Result<TimingOutcome> time_official(const Evaluation& e, const TimingQuestion& asked);
// The address space that the large buffers of any shape of the task may need.
int64_t large_addresses(const Task& task);

}  // namespace cutegen::eval
