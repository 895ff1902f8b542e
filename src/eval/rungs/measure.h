// SPDX-License-Identifier: Apache-2.0
// The rung timing on a GPU: the official shape, measured.
//
// Contract: the time is the median of timed runs of all steps (prepare included), each with a cold
// L2, with its 95% interval; `measured`. With a program to compare with (the incumbent), both run
// in turn in random order, and the median of the paired ratios comes with its interval; pairs are
// taken in blocks until the candidate is surely slower or the ratio is known well (PairRule). Every
// run writes its own copy of the outputs, and after each block all copies are compared with the
// truth on the GPU; where that cannot be done, inputs repeat the values of a small set, and an
// output that keeps its pattern at places which the evaluator draws was not written. The runner's
// times are checked against the evaluator's clock, less a control block: where they disagree block
// after block the evaluation is aborted. Faster than the floor is rejected. More than the
// GPU's memory: skipped.
//
// Example: CG_TRY(TimingOutcome t, measure_official(evaluation, {id}));
#pragma once

#include "eval/rungs/timing.h"
#include "eval/sets/official_set.h"

namespace cutegen::eval {

struct MeasureOptions {
  std::string program_id;
  OfficialSetPtr set;  // the values that the shape holds, if a set could be made
  const KernelProgram* against = nullptr;  // the incumbent
  const PreparedShape* shape = nullptr;    // another one than the official
  // Ends a series as soon as the program is surely slower. Off when several shapes decide.
  bool drop_losers = true;
};
Result<TimingOutcome> measure_official(const Evaluation& e, const MeasureOptions& options);

// Below the floor: rejected. Below the roofline of the operations as written: the detail says so.
void hold_to_floor(const Roofline& floor, const Timing& timing, TimingOutcome& outcome);

// One block of timed runs, by both clocks.
struct TimedBlock {
  double claimed_ns = 0, seen_ns = 0;  // of all its runs; what the control takes is off both
  int runs = 0;
};
// Of a runner that tells the truth at least one block agrees; the sums are those of all blocks.
ClockCheck check_clock(const std::vector<TimedBlock>& blocks);

}  // namespace cutegen::eval
