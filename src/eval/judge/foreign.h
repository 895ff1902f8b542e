// SPDX-License-Identifier: Apache-2.0
// A foreign answer: a peer's Python file with `class ModelNew`, judged beside our candidates.
//
// Contract: it runs in a process of its own (torch/foreign_worker.h) and gets the same families of
// fresh secret inputs as candidates; truth, tolerance and seeds stay here, where outputs are
// compared. The official shape decides; where that is judged, another shape that the answer does
// not take is a mark. On a GPU it is timed in turn with eager's module, which runs in a process
// that we trust (eval/judge/foreign_timing.h); elsewhere times are skipped. Its program_id begins
// with "foreign:", and it is never certified: its process holds its own clock. docs/foreign.md says
// what is not seen. An Error only where the Context ended; our own trouble is `aborted`.
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
  BesideSource baseline;  // of a GPU
};

Result<Verdict> judge_foreign(const Context& ctx, const Services& services, const Task& task,
                              const ForeignRequest& request, const ForeignOpeners& openers,
                              const Progress& progress);

// How a reply ends a rung; `shape` may be empty.
RungEnd end_of(const torch::ForeignReply& reply, const std::string& shape);

}  // namespace cutegen::eval
