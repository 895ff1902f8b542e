// SPDX-License-Identifier: Apache-2.0
// The rung timing: the official shape on the device's time model, from a sample of its CTAs.
//
// Contract: the time is the sum of the modelled kernel times (prepare included), labelled
// `modelled`, with the error of the sample as its interval. The sample is drawn from a seed that
// nobody else knows, so that no program can do less work in the CTAs that are counted. `lines`:
// with counters by source line and remarks (eval/diagnosis/diagnose.h). What the blocks write is
// compared with the truth where it can be (eval/rungs/official_check.h). Out of budget: no time,
// and the reason; a block that takes far longer than the task's work has `failed`. The modelled
// time is reported as it is: below the roofline of the operations as written, and even below the
// floor, unless the program leaves out most of the traffic.
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

struct OfficialQuestion {
  const Coverage* coverage = nullptr;  // of the runs that were compared; null: only a time is asked
  std::string program_id;
  bool lines = false;
  const PreparedShape* shape = nullptr;  // another one than the official
  bool many_blocks = false;              // draw as many blocks as allowed at once
};

// The figures that stand beside every time: floor, reachable bound, roofline.
void set_bounds(Timing& timing, const Roofline& roofline);
Result<TimingOutcome> time_official(const Evaluation& e, const OfficialQuestion& asked);
// Address space that the large buffers of any shape of this task may need.
int64_t large_addresses(const Task& task);

}  // namespace cutegen::eval
