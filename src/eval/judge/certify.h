// SPDX-License-Identifier: Apache-2.0
// Certification: times a correct program against its baselines in fresh processes.
//
// Contract: certify() first judges the program like any candidate. An incorrect program gets no
// certificate. For a correct program, certify() starts request.processes pairs of processes: a
// fresh runner for the program and a fresh torch worker for the baselines. Each pair of processes
// runs program and baselines alternately (turns.h), in the modes of core/time_mode.h. Every timed
// shape of the task has its own processes; the headline times are weighted geometric means
// (core/weighted.h). If a baseline raises or its result differs from eager's result, the
// certificate contains the reason instead of a time. Baselines run in processes that never see a
// candidate.
//
// Example: CG_TRY(Certificate c, certify(ctx, services, task, request, open_worker, progress));
#pragma once

#include "core/certificate.h"
#include "eval/api/client.h"
#include "eval/rungs/rung.h"

namespace cutegen::eval {

// Opens a torch worker. Several threads call a WorkerSource at the same time.
using WorkerSource = std::function<Result<std::unique_ptr<torch::TorchWorker>>()>;

Result<Certificate> certify(const Context& ctx, const Services& services, const Task& task,
                            const CertifyRequest& request, const WorkerSource& open_worker,
                            const Progress& progress);

struct Rounds;  // turns.h
// Combines the rounds of all processes. In mode cold, raises `apart` to the largest relative
// difference between two processes' ratios.
CertifiedMode pooled(TimeMode mode, const std::vector<Rounds>& processes, double precise,
                     double& apart);

}  // namespace cutegen::eval
