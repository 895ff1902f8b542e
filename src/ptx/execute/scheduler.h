// SPDX-License-Identifier: Apache-2.0
// Runs the CTAs of a grid on the host's threads.
//
// Contract: a host thread runs one CTA after the other. If all its CTAs poll memory, they may wait
// for a later CTA, so it begins another one if the GPU could hold all of them at once. A
// cooperative launch begins all CTAs at once. If several CTAs have findings, the report has the
// finding of the lowest index.
//
// RunOptions::order decides which CTAs begin first. It permutes only CTAs that the GPU could hold
// at once, because a GPU begins CTAs in the order of their indices and a CTA may wait for earlier
// ones.
//
// If CTAs take work from a counter, the CTA that has done least runs next, so that all advance
// equally (Job::fair). If only a sample of the CTAs runs, Pulls advances the counter for the
// omitted CTAs.
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
  int64_t cluster = 1;  // CTAs per cluster
  int64_t threads = 1;
  int64_t resident = 0;  // 0: not known
  bool cooperative = false, sampled = false;
  int64_t units() const { return total / cluster; }  // clusters
};

LaunchReport run_grid(Job& job, const Grid& grid, const RunOptions& options);

}  // namespace cutegen::ptx
