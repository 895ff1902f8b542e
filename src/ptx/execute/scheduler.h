// SPDX-License-Identifier: Apache-2.0
// Runs the CTAs of a grid on the host's threads.
//
// Contract: a host thread runs one CTA after another. If all CTAs of a host thread poll memory,
// these CTAs may wait for a CTA that has not begun. Therefore, a host thread whose CTAs all poll
// memory begins another CTA, if the GPU could hold all of the CTAs at once. A cooperative launch
// begins all CTAs at once. If several CTAs have faults, the report has the `Finding` of the CTA
// with the lowest index.
//
// RunOptions::order decides which CTAs begin first. The order changes only among CTAs that the GPU
// could hold at once: a GPU begins CTAs in the order of their indices, so a CTA may wait for a CTA
// with a lower index.
//
// If CTAs take tiles from a counter in memory, the CTA that has executed the fewest instructions
// runs next, so that all CTAs advance equally (Job::fair). If only a sample of the CTAs runs,
// `Pulls` advances the counter for the omitted CTAs.
//
// The CTAs of a cluster begin together on one host thread. A sample consists of whole clusters.
//
// If only a sample of the CTAs runs, the CTAs run in batches (ptx/model/sampling.h), and the report
// estimates the counters of the whole grid.
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
