// SPDX-License-Identifier: Apache-2.0
// The rung timing on a GPU: measures the official shape.
//
// Contract: the time is the median of timed runs of all steps (prepare included), each with a cold
// L2, with its 95% interval; its origin is `measured`. With a program to compare with (the
// incumbent), both run alternately in random order, and the median of the paired ratios has its
// interval. Blocks of pairs follow until the candidate is surely slower or the ratio is known well
// (PairRule). Every run writes its own copy of the outputs, and after each block the GPU compares
// all copies with the truth. If it cannot, inputs repeat the values of a small set, and the
// evaluator checks random places of each output for its initial pattern. It also checks the
// runner's times against its own clock, less a control block, and aborts the evaluation if they
// disagree block after block. A time below the floor is rejected. A shape that exceeds the GPU's
// memory is skipped.
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
