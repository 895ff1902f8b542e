// SPDX-License-Identifier: Apache-2.0
// The rung timing on a GPU: measures the official shape.
//
// Contract: the time is the median of timed runs of all steps (prepare included), each with a cold
// L2, with its 95% interval; its origin is `measured`. If there is an incumbent to compare with,
// both programs run alternately in random order, and the median of the paired ratios gets an
// interval, too. Blocks of pairs follow until the candidate is surely slower or the ratio is
// precise enough (PairRule). Every run writes its own copy of the outputs, and after each block the
// GPU compares all copies with the truth. If it cannot, inputs repeat the values of a small set,
// and the evaluator checks random places of each output for its initial pattern. The evaluator also
// checks the runner's times against its own clock, less a control block, and aborts the evaluation
// if the clocks keep disagreeing. A time below the floor is rejected. A shape that exceeds the
// GPU's memory is skipped.
//
// Example: CG_TRY(TimingOutcome t, measure_official(evaluation, {id}));
#pragma once

#include "eval/rungs/timing.h"
#include "eval/sets/official_set.h"

namespace cutegen::eval {

struct MeasureOptions {
  std::string program_id;
  OfficialSetPtr set;                      // values of the shape, if a set exists
  const KernelProgram* against = nullptr;  // the incumbent
  const PreparedShape* shape = nullptr;    // a shape other than the official one
  // Ends a series when the program is surely slower. Off if several shapes decide together.
  bool drop_losers = true;
};
Result<TimingOutcome> measure_official(const Evaluation& e, const MeasureOptions& options);

// Below the floor: rejected. Below the roofline of the operations as written: noted in the detail.
void hold_to_floor(const Roofline& floor, const Timing& timing, TimingOutcome& outcome);

// The time of one block of timed runs, by both clocks.
struct TimedBlock {
  double claimed_ns = 0, seen_ns = 0;  // sums over its runs, less the control's
  int runs = 0;
};
// If the runner is honest, at least one block agrees. The result has the sums over all blocks.
ClockCheck check_clock(const std::vector<TimedBlock>& blocks);

}  // namespace cutegen::eval
