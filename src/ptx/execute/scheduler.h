// SPDX-License-Identifier: Apache-2.0
// Runs the CTAs of a grid on the host's threads.
//
// Contract: a host thread runs CTA after CTA. If all CTAs that it holds poll memory, they may wait
// for a later one. So it begins another, as long as the GPU could hold them together. A cooperative
// launch begins all CTAs at once. The report has the finding of the faulty CTA with the lowest
// index, whichever thread met it.
//
// RunOptions::order decides which CTAs begin first. It permutes only CTAs that the GPU could hold
// together. A GPU begins CTAs in the order of their indices, so a CTA may wait for earlier ones.
//
// CTAs that take work from a counter advance in step: the one that has done least runs first
// (Job::fair). In a sample, each CTA stands for several, and the omitted ones take their share of
// the work, too (Pulls).
//
// The CTAs of a cluster begin together on one host thread. A sample consists of whole clusters.
//
// A sampled grid runs in batches (ptx/model/sampling.h). The report describes the whole grid.
//
// Example: LaunchReport r = run_grid(job, {.total = 64, .threads = 2}, options);
#pragma once

#include "ptx/execute/cta.h"

namespace cutegen::ptx {

struct Grid {
  int64_t total = 0;    // CTAs
  int64_t cluster = 1;  // CTAs of one
  int64_t threads = 1;
  int64_t resident = 0;  // 0: not known
  bool cooperative = false, sampled = false;
  int64_t units() const { return total / cluster; }  // clusters
};

LaunchReport run_grid(Job& job, const Grid& grid, const RunOptions& options);

}  // namespace cutegen::ptx
