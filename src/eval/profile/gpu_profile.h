// SPDX-License-Identifier: Apache-2.0
// The rung profile on a GPU: its own counters where they can be had, else the best that can.
//
// Contract: three rungs. ncu: the hardware's counters of every launch at the official shape, with
// the simulator's beside them where it can run the program. simulator: its counters alone, of the
// same GPU model. resources: measured times, the assembler's figures and the task's least work.
// Profile::source names the one that holds, Profile::note why no better one and what helps. Every
// kernel has a diagnosis. The GPU's slot is held while counters are read. Nothing here is the
// program's fault: it was judged and timed before. The profiler's libraries in the runner rule out
// the filter of system calls, so its grade is told.
//
// Example: CG_TRY(GpuProfile p, profile_on_gpu(evaluation, {id, kernels,
// &timing}));
#pragma once

#include "core/audit.h"
#include "eval/rungs/prepare.h"

namespace cutegen::eval {

struct GpuProfileInput {
  std::string program_id;
  const std::vector<KernelProfile>& timed;  // one a step, from the timed runs
  const Timing* timing = nullptr;
  const BinaryAudit* audit = nullptr;
};
struct GpuProfile {
  Profile profile;
  std::optional<sandbox::Grade> grade;  // of the runner under ncu
};
Result<GpuProfile> profile_on_gpu(const Evaluation& e, const GpuProfileInput& input);

}  // namespace cutegen::eval
