// SPDX-License-Identifier: Apache-2.0
// The rung timing: the official shape on the device's time model, from a sample of its CTAs.
//
// Contract: the time is the sum of the modelled kernel times (prepare included), labelled
// `modelled`, with the error of the sample as its interval. The sample is drawn from a seed that
// nobody else knows, so that no program can do less work in the CTAs that are counted. `lines`:
// with counters by source line and remarks (eval/diagnose.h). Large buffers are addresses without
// memory (see apps/runner/memory.h), so values do not matter and are not checked here. Out of
// budget: no time, and the reason. Nothing runs faster than the roofline floor: a model that says
// so is reported as inconsistent, at the floor.
//
// Example: CG_TRY(TimingOutcome t, time_official(ctx, services, task, prepared));
#pragma once

#include "eval/prepare.h"

namespace cutegen {

struct TimingOutcome {
  RungEnd end;
  RungResult result = RungResult::passed;
  std::optional<Timing> timing;
  std::vector<KernelProfile> kernels;
  std::vector<std::string> marks;
};

[[nodiscard]] Roofline floor_of(const GpuSpec& gpu, const Task& task);
[[nodiscard]] Result<TimingOutcome> time_official(const Context& ctx, const Services& services,
                                                  const Task& task, const Prepared& prepared,
                                                  bool lines);
// Address space that the large buffers of any shape of this task may need.
[[nodiscard]] int64_t large_addresses(const Task& task);

}  // namespace cutegen
