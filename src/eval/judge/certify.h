// SPDX-License-Identifier: Apache-2.0
// Certification: a correct program beside its baselines, in fresh processes.
//
// Contract: the program is judged first, as any candidate (the whole ladder, without times); one
// that is not correct has no certificate. Then, in each of `processes` fresh runners and torch
// workers: rounds in which the program and every baseline take a short block of runs each, in an
// order drawn anew, until every ratio is known to `precise` (half its 95% interval) or the rounds
// are used up; cold, warm, as a CUDA graph, by the call. Every timed shape of the task has its own
// processes; headlines are weighted geometric means (core/weighted.h). A baseline that raises, or
// whose result is not eager's, is left out by name. Baselines run in processes that see no
// candidate.
//
// Example: CG_TRY(Certificate c, certify(ctx, services, task, request, open_worker, progress));
#pragma once

#include "core/certificate.h"
#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

// Called by several threads at once.
using WorkerSource = std::function<Result<std::unique_ptr<torch::TorchWorker>>()>;

Result<Certificate> certify(const Context& ctx, const Services& services, const Task& task,
                            const CertifyRequest& request, const WorkerSource& open_worker,
                            const Progress& progress);

// Times of one mode: round i of each.
struct Rounds {
  std::vector<double> own;
  std::map<std::string, std::vector<double>> others;
};
// Whether all ratios are known to `precise`.
bool precise_enough(const Rounds& rounds, double precise);
// The rounds of all processes as one; `apart` grows, in the mode cold, to the largest difference
// between two of them.
CertifiedMode pooled(const std::string& mode, const std::vector<Rounds>& processes, double precise,
                     double& apart);

}  // namespace cutegen::eval
