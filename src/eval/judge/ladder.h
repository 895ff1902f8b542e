// SPDX-License-Identifier: Apache-2.0
// The ladder: lint, compile, audit, load, correctness, timing, profile; stops at the first failure.
//
// Contract: the verdict lists every rung up to `up_to` with its time; rungs that were not reached
// are skipped. The candidate's faults end in a status, cutegen's own failures in `aborted` with the
// reason. Returns an Error only if the Context ended.
//
// Example: CG_TRY(Verdict v, climb(ctx, services, task, request, progress));
#pragma once

#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

Result<Verdict> climb(const Context& ctx, const Services& services, const Task& task,
                      const EvaluateRequest& request, const Progress& progress);
// An empty verdict, `correct` until a rung fails; `program` is the identifier of what is judged.
Verdict begin_verdict(const Services& services, const Task& task, std::string program);
// One grade for several processes: the protection that all of them had.
SandboxGrade weakest(const std::vector<sandbox::Grade>& grades);

inline constexpr size_t kMostDetail = 1500;  // bytes of a rung's detail that a verdict keeps

}  // namespace cutegen::eval
