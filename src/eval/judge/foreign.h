// SPDX-License-Identifier: Apache-2.0
// Judges a third-party solution: a Python file with `class ModelNew`, by the rules for candidates.
//
// Contract: the solution runs in its own process (torch/foreign_worker.h) and gets fresh secret
// inputs of the same families as candidates. The evaluator keeps truth, tolerance and seeds, and
// compares the outputs. The official shape decides: if it is judged, another shape that the
// solution does not support only leaves a mark. On a GPU, the evaluator times calls alternately
// with the module in eager mode, in a trusted process (eval/judge/foreign_timing.h); on a
// simulator, timing is skipped. The program_id begins with "foreign:". There is no certificate,
// because the solution runs in the process that holds the clock. docs/foreign.md lists what the
// evaluator cannot see. Returns an Error only if the Context ended; cutegen's own failures give
// `aborted`.
//
// Example: CG_TRY(Verdict v, judge_foreign(ctx, services, task, request, openers, progress));
#pragma once

#include "eval/api/client.h"
#include "eval/judge/foreign_timing.h"
#include "eval/rungs/rung.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {

struct ForeignOpeners {
  std::function<Result<std::unique_ptr<torch::ForeignWorker>>()> answer;
  BesideSource baseline;  // on a GPU
};

Result<Verdict> judge_foreign(const Context& ctx, const Services& services, const Task& task,
                              const ForeignRequest& request, const ForeignOpeners& openers,
                              const Progress& progress);

// How a reply ends a rung. `shape` may be empty.
RungEnd end_of(const torch::ForeignReply& reply, const std::string& shape);

}  // namespace cutegen::eval
