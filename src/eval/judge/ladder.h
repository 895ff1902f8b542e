// SPDX-License-Identifier: Apache-2.0
// The ladder: lint, compile, audit, load, correctness, timing, profile; stops at the first failure.
//
// Contract: the verdict lists every rung up to `up_to` with its time. Rungs that the program did
// not reach are skipped. A fault of the candidate gives a status; cutegen's own failures give
// `aborted` with the reason. Returns an Error only if the Context ended.
//
// Example: CG_TRY(Verdict v, climb(ctx, services, task, request, progress));
#pragma once

#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

Result<Verdict> climb(const Context& ctx, const Services& services, const Task& task,
                      const EvaluateRequest& request, const Progress& progress);
// A verdict without rungs. It is `correct` until a rung fails. program: its id.
Verdict begin_verdict(const Services& services, const Task& task, std::string program);
// The weakest of the grades: the protection that all processes have.
SandboxGrade weakest(const std::vector<sandbox::Grade>& grades);

inline constexpr size_t kMostDetail = 1500;  // bytes of a rung's detail that a verdict keeps

}  // namespace cutegen::eval
