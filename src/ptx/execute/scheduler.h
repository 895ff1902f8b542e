// SPDX-License-Identifier: Apache-2.0
// The CTAs of a grid on the host's threads.
//
// Contract: a host thread runs CTA after CTA. While all of those it holds poll memory it starts
// another, as far as the GPU could hold them too, so that CTAs which wait for one another go on. A
// cooperative launch has all CTAs started at once. The finding of the first CTA at fault is
// reported, whichever thread met it.
//
// RunOptions::order says which CTAs begin first. Only CTAs that the GPU could hold together change
// places, since a GPU begins CTAs by index: who waits for an earlier CTA always gets its answer.
//
// CTAs that take work from a counter go on in step, the one that has done least first (Job::fair).
// In a sample each of them stands for several, which take their share of the work too (Pulls).
//
// A sampled grid runs in batches (ptx/model/sampling.h) and is reported as if all of it had run.
//
// Example: LaunchReport r = run_grid(job, {.total = 64, .threads = 2}, options);
#pragma once

#include "ptx/execute/cta.h"

namespace cutegen::ptx {

struct Grid {
  int64_t total = 0;  // CTAs
  int64_t threads = 1;
  int64_t resident = 0;  // 0: not known
  bool cooperative = false, sampled = false;
};

LaunchReport run_grid(Job& job, const Grid& grid, const RunOptions& options);

}  // namespace cutegen::ptx
