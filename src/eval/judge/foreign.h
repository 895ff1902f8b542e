// SPDX-License-Identifier: Apache-2.0
// Judges a third-party solution: a Python file with `class ModelNew`, by the rules for candidates.
//
// Contract: the solution runs in its own process (torch/foreign_worker.h) on fresh secret inputs,
// from the same distributions as for candidates. The process never receives the truth (the result
// in float64), tolerances or seeds; the evaluator compares the outputs. If the solution supports
// the official shape (the sizes in the task file) but not another test shape, the verdict only
// notes this in `marks`. On a GPU, the evaluator times the solution alternately with the reference
// in eager mode, which runs in a trusted process (eval/judge/foreign_timing.h). On a simulator, the
// evaluator skips timing. The program_id of a solution begins with "foreign:". A solution gets no
// certificate, because it could manipulate the clock of its own process; docs/foreign.md lists
// manipulations that the evaluator cannot detect. The result is an Error only if the Context was
// cancelled or timed out. If cutegen itself fails, the verdict's status is `aborted`.
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

// Converts a worker's reply to the result of a check. `shape` is the shape's name, or empty.
RungEnd end_of(const torch::ForeignReply& reply, const std::string& shape);

}  // namespace cutegen::eval
