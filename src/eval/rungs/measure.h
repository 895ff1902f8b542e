// SPDX-License-Identifier: Apache-2.0
// The rung timing on a GPU: measures the official shape.
//
// Contract: the time is the median of timed runs of all steps (prepare included), each with a cold
// L2, with its 95% interval; its origin is `measured`. If there is an incumbent to compare with,
// both programs run alternately in random order, and the median of the paired ratios gets an
// interval, too. The evaluator adds blocks of pairs until the candidate is certainly slower or the
// ratio is precise enough (PairRule). Every run writes its own copy of the outputs, and after each
// block the GPU compares all copies with the truth. If it cannot, inputs repeat the values of a
// small set, and the evaluator checks random places of each output for its initial pattern. The
// evaluator also measures each block with its own clock, subtracts a control block (everything
// except the steps), and aborts the evaluation if the runner's times keep disagreeing with this. A
// time below the floor is rejected. A shape that exceeds the GPU's memory is skipped.
//
// Example: CG_TRY(TimingOutcome t, measure_official(evaluation, {id}));
#pragma once

#include "eval/rungs/timing.h"
#include "eval/sets/gpu_set.h"

namespace cutegen::eval {

struct MeasureOptions {
  std::string program_id;
  GpuSetPtr set;                           // values of the shape, if a set exists
  const KernelProgram* against = nullptr;  // the incumbent
  const PreparedShape* shape = nullptr;    // a shape other than the official one
  // Whether to end the series when the program is certainly slower. False if several weighted
  // shapes decide together.
  bool drop_losers = true;
};
Result<TimingOutcome> measure_official(const Evaluation& e, const MeasureOptions& options);

// Rejects a time below the floor. If a time is below the roofline of the operations as written, the
// detail says so.
void hold_to_floor(const Roofline& floor, const Timing& timing, TimingOutcome& outcome);

// The time of one block of timed runs, by both clocks.
struct TimedBlock {
  double claimed_ns = 0, seen_ns = 0;  // sums over its runs, minus the control block's
  int runs = 0;
};
// `agrees` is true if at least one block agrees, as it does if the runner is honest. The times are
// sums over all blocks.
ClockCheck check_clock(const std::vector<TimedBlock>& blocks);

}  // namespace cutegen::eval
