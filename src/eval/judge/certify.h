// SPDX-License-Identifier: Apache-2.0
// Certification: times a correct program against its baselines in fresh processes.
//
// Contract: first judges the program like any candidate, without times; an incorrect program gets
// no certificate. Then it starts `processes` fresh runners and torch workers. In each, the program
// and every baseline take turns (turns.h). Modes: cold, warm, as a CUDA graph, by the call. Every
// timed shape of the task has its own processes; headlines are weighted geometric means
// (core/weighted.h). The certificate names a baseline that raises, or whose result differs from
// eager's, instead of timing it. Baselines run in processes that never see a candidate.
//
// Example: CG_TRY(Certificate c, certify(ctx, services, task, request, open_worker, progress));
#pragma once

#include "core/certificate.h"
#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

// Several threads call the function at the same time.
using WorkerSource = std::function<Result<std::unique_ptr<torch::TorchWorker>>()>;

Result<Certificate> certify(const Context& ctx, const Services& services, const Task& task,
                            const CertifyRequest& request, const WorkerSource& open_worker,
                            const Progress& progress);

struct Rounds;  // turns.h
// Pools the rounds of all processes. In mode cold, raises `apart` to the largest difference between
// two processes.
CertifiedMode pooled(TimeMode mode, const std::vector<Rounds>& processes, double precise,
                     double& apart);

}  // namespace cutegen::eval
