// SPDX-License-Identifier: Apache-2.0
// What a sample of blocks at the official shape says of a program, on a simulator.
//
// Contract: check_official_run() compares what the blocks wrote with the truth of the excerpt that
// the inputs repeat, where a block's result depends on no block that did not run. Where values
// cannot be compared, `not_compared` says why, and the run must execute what compared runs did:
// the same instructions, as much arithmetic for the task's, and stores to all of the outputs.
// docs/evaluation.md: "The official shape on the simulator".
//
// Example: OfficialCheck c = check_official_run(...); if (!c.end.passed) return c.end;
#pragma once

#include "eval/rungs/coverage.h"
#include "eval/rungs/official_memory.h"

namespace cutegen::eval {

struct OfficialCheck {
  RungEnd end;               // passed, or why not
  std::string not_compared;  // why no value was compared; empty: some were
  int64_t elements = 0;      // that were compared
  bool by_sample =
      false;  // the end rests on which blocks were drawn: draw more before believing it
  std::vector<std::string> marks;
};

struct OfficialRun {
  const Task& task;
  const std::vector<std::string>& sources;  // of the modules
  const ShapeCase& official;
  const device::PlanSteps& steps;
  const device::RunReport& report;
  const OfficialMemory& memory;
  const Coverage& coverage;
  bool compared_whole = false;  // the official shape is among the test shapes
};
OfficialCheck check_official_run(const OfficialRun& run);

// Warp instructions of one block beyond which it does not end: 32 times what blocks of a right run
// took for the task's work, and a million.
double most_of_a_block(const ShapeCase& official, const Coverage& coverage, int64_t blocks);

}  // namespace cutegen::eval
