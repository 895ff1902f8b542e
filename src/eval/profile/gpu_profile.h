// SPDX-License-Identifier: Apache-2.0
// The rung profile on a GPU: uses the best source of counters that works.
//
// Contract: there are three sources. ncu: the hardware's counters of every launch at the official
// shape, and the simulator's counters if it can run the program. simulator: counters of the same
// GPU model. resources: measured times, the assembler's figures and the task's least work.
// Profile::source names the source, Profile::note says why there is no better one and what helps.
// Every kernel has a diagnosis. This call holds the GPU's slot while it reads counters. No failure
// here is the program's fault: the program was judged and timed before. The profiler's libraries in
// the runner exclude the filter of system calls, so the profile reports the runner's sandbox grade.
//
// Example: CG_TRY(GpuProfile p, profile_on_gpu(evaluation, {id, kernels,
// &timing}));
#pragma once

#include "core/audit.h"
#include "eval/rungs/prepare.h"

namespace cutegen::eval {

struct GpuProfileInput {
  std::string program_id;
  const std::vector<KernelProfile>& timed;  // one for each step, from the timed runs
  const Timing* timing = nullptr;
  const BinaryAudit* audit = nullptr;
};
struct GpuProfile {
  Profile profile;
  std::optional<sandbox::Grade> grade;  // of the runner under ncu
};
Result<GpuProfile> profile_on_gpu(const Evaluation& e, const GpuProfileInput& input);

}  // namespace cutegen::eval
