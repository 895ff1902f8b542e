// SPDX-License-Identifier: Apache-2.0
// Profiles a program on a GPU, with the best source of counters that works.
//
// Contract: profile_on_gpu() tries three sources in order:
// - `ncu`: hardware counters of every launch at the official shape (the sizes in the task file),
//   plus the simulator's counters if the simulator can run the program
// - `simulator`: counters of the simulator, which models the same GPU
// - `resources`: no counters, but measured times, ptxas's figures and the least work of the task
//
// Profile::source names the source that worked. Profile::note says why no better source worked, and
// gives the remedy. Every kernel has a diagnosis. The call has the GPU's lock (GpuSlot) while it
// reads counters. A failure is never the program's fault, because the program has passed all
// earlier checks. The runner under ncu has no seccomp filter, because ncu's libraries open the
// GPU's device files again; GpuProfile::grade reports its sandbox protection.
//
// Example: CG_TRY(GpuProfile p, profile_on_gpu(evaluation, {id, kernels, &timing}));
#pragma once

#include "core/audit.h"
#include "eval/rungs/prepare.h"

namespace cutegen::eval {

struct GpuProfileInput {
  std::string program_id;
  const std::vector<KernelProfile>& timed;  // times of the plan's steps
  const Timing* timing = nullptr;
  const BinaryAudit* audit = nullptr;
};
struct GpuProfile {
  Profile profile;
  std::optional<sandbox::Grade> grade;  // sandbox protection of the runner under ncu
};
Result<GpuProfile> profile_on_gpu(const Evaluation& e, const GpuProfileInput& input);

}  // namespace cutegen::eval
