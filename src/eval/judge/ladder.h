// SPDX-License-Identifier: Apache-2.0
// The ladder: runs the checks (rungs) of an evaluation in order: lint, compile, audit, load,
// correctness, timing, profile. The ladder stops at the first failure.
//
// Contract: the verdict lists every rung up to request.up_to with its duration. Rungs after a
// failure are `skipped`. If the candidate is at fault, the verdict's status names the kind of
// fault. If cutegen itself fails, the status is `aborted`, and the verdict has the reason. climb()
// returns an Error only if the Context was cancelled or timed out.
//
// Example: CG_TRY(Verdict v, climb(ctx, services, task, request, progress));
#pragma once

#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

Result<Verdict> climb(const Context& ctx, const Services& services, const Task& task,
                      const EvaluateRequest& request, const Progress& progress);
// Returns a verdict with status `correct` and without reports of rungs. `program` is the program's
// id.
Verdict begin_verdict(const Services& services, const Task& task, std::string program);
// Returns the sandbox protections that all given processes have.
SandboxGrade weakest(const std::vector<sandbox::Grade>& grades);

// Adds the shapes at which outputs were not compared to the first line of a correct verdict.
std::string with_not_compared(const std::string& headline, const Verdict& verdict);

// The largest number of bytes of a check's detail that a verdict keeps.
inline constexpr size_t kMostDetail = 1500;

}  // namespace cutegen::eval
