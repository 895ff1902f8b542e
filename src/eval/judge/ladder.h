// SPDX-License-Identifier: Apache-2.0
// The ladder: lint, compile, audit, load, correctness, timing, profile; stops at the first failure.
//
// Contract: every rung up to `up_to` is in the verdict with its time, those not reached as skipped.
// The candidate's faults end in a status; our own trouble gives `aborted` with the reason; an Error
// is returned only when the Context ended.
//
// Example: CG_TRY(Verdict v, climb(ctx, services, task, request, progress));
#pragma once

#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

Result<Verdict> climb(const Context& ctx, const Services& services, const Task& task,
                      const EvaluateRequest& request, const Progress& progress);
// One grade for several processes: what all of them held.
SandboxGrade weakest(const std::vector<sandbox::Grade>& grades);

}  // namespace cutegen::eval
