// SPDX-License-Identifier: Apache-2.0
// The rung profile on a GPU: uses the best source of counters that works.
//
// Contract: uses the first source that works. ncu: the hardware's counters of every launch at the
// official shape, and the simulator's counters if it can run the program. simulator: the counters
// of the same GPU model. resources: measured times, the assembler's figures and the task's least
// work. Profile::source names the source; Profile::note says why no better source works, and the
// remedy. Every kernel has a diagnosis. The call holds the GPU's slot while it reads counters. A
// failure here is never the program's fault, because the program has been judged and timed before.
// The runner under ncu has no filter of system calls, because ncu's libraries open the GPU's
// devices again; the profile reports that runner's sandbox grade.
//
// Example: CG_TRY(GpuProfile p, profile_on_gpu(evaluation, {id, kernels, &timing}));
#pragma once

#include "core/audit.h"
#include "eval/rungs/prepare.h"

namespace cutegen::eval {

struct GpuProfileInput {
  std::string program_id;
  const std::vector<KernelProfile>& timed;  // one for each step
  const Timing* timing = nullptr;
  const BinaryAudit* audit = nullptr;
};
struct GpuProfile {
  Profile profile;
  std::optional<sandbox::Grade> grade;  // protection of the runner under ncu
};
Result<GpuProfile> profile_on_gpu(const Evaluation& e, const GpuProfileInput& input);

}  // namespace cutegen::eval
