// SPDX-License-Identifier: Apache-2.0
// Checks a program at the official shape on a simulator, which runs a sample of its blocks.
//
// Contract: the inputs repeat an excerpt (eval/sets/excerpts.h), a small set with known truth. If
// no block outside the sample affects a result, the check compares what the blocks wrote with the
// truth of the excerpt. If outputs cannot be compared, `not_compared` gives the reason, and the run
// must do what compared runs did: execute the same instructions, as much arithmetic per FLOP of the
// task, and write all of the outputs. docs/evaluation.md: "The official shape on the simulator".
//
// Example: SampledCheck c = check_sampled_run(...); if (!c.end.passed) return c.end;
#pragma once

#include "eval/rungs/coverage.h"
#include "eval/rungs/excerpt_memory.h"

namespace cutegen::eval {

struct SampledCheck {
  RungEnd end;               // passed, or the fault
  std::string not_compared;  // why no value was compared; empty if some were
  int64_t elements = 0;      // compared elements
  // The result depends on which blocks ran: run more of them before you trust it.
  bool by_sample = false;
  std::vector<std::string> marks;
  // Blocks that may behave differently from all that ran; empty if there are none.
  std::string blocks_missed;
};

struct CheckedRun {
  const Task& task;
  const std::vector<std::string>& sources;  // the source of each module
  const ShapeCase& official;
  const device::PlanSteps& steps;
  const device::RunReport& report;
  const ExcerptMemory& memory;
  const Coverage& coverage;
  bool compared_whole = false;  // the official shape is among the test shapes
};
SampledCheck check_sampled_run(const CheckedRun& run);

// Names the launches with kinds of blocks that did not run; empty if every kind did.
std::string blocks_missed(const device::RunReport& report);

// The most warp instructions that one block may execute: 32 times what blocks of a correct run
// needed for the same work, plus a million.
double most_of_a_block(const ShapeCase& official, const Coverage& coverage, int64_t blocks);

}  // namespace cutegen::eval
