// SPDX-License-Identifier: Apache-2.0
// Timing on the simulator: models a program's time at the official shape (the sizes in the task
// file) from a sample of CTAs.
//
// Contract: the time is the sum of the modelled kernel times, including `prepare`; its interval
// follows from the sampling error. A secret seed selects the CTAs, so that a program cannot do less
// work in the sampled CTAs. With TimingQuestion::lines, the result has counters per source line and
// remarks (eval/diagnosis/explain.h). If possible, time_official() also compares the values that
// the CTAs write with the results in float64 (eval/rungs/sampled_check.h). If the simulation
// exceeds its time limit, the result has a reason instead of a time. If one CTA executes far more
// instructions than the task's work justifies, the program gets the status `failed`. The evaluator
// rejects a program that beats the floor (the least possible time) and omits most of the memory
// traffic. It reports any other modelled time below the floor unchanged.
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
  std::string official_not_compared;  // why no value at the official shape was compared
};

inline TimingOutcome failed(RungEnd end) {
  TimingOutcome out;
  out.result = RungResult::failed;
  out.end = std::move(end);
  return out;
}

struct TimingQuestion {
  // The instructions that runs with compared outputs executed; null: time the program without
  // comparing values.
  const Coverage* coverage = nullptr;
  std::string program_id;
  bool lines = false;
  const PreparedShape* shape = nullptr;  // a shape other than the official shape
  bool many_blocks = false;              // begin with the largest permitted sample of CTAs
};

// Sets the floor (the least possible time), the reachable time and the roofline.
void set_bounds(Timing& timing, const Roofline& roofline);
Result<TimingOutcome> time_official(const Evaluation& e, const TimingQuestion& asked);
// Returns how many bytes of address space the large buffers need: the maximum over the task's
// shapes.
int64_t large_addresses(const Task& task);

}  // namespace cutegen::eval
