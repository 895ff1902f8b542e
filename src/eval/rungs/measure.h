// SPDX-License-Identifier: Apache-2.0
// Times a program on a GPU at the official shape (the sizes in the task file).
//
// Contract: a run executes all steps of the plan, including `prepare`, with a cold L2. The time is
// the median of the timed runs, with its 95% interval. If there is an incumbent (the best program
// so far), the evaluator runs both programs alternately in random order, and computes the median of
// the paired ratios with its interval. The evaluator adds blocks of pairs until the candidate is
// slower with high confidence, or the ratio is precise enough (PairRule).
//
// Every run writes its own copy of the outputs, and after each block the GPU compares all copies
// with the truth (the result in float64). If the truth does not fit in the GPU's memory, inputs
// repeat the values of a small input set, and the evaluator only checks at random places whether
// the program has overwritten the outputs' initial pattern.
//
// The evaluator also measures each block with its own clock and subtracts the time of a control
// block (a block without the steps). If the runner's reported times keep disagreeing with this
// clock, the evaluator aborts the evaluation. It rejects a program with a time below the floor (the
// least possible time). At a shape that exceeds the GPU's memory, the evaluator skips timing.
//
// Example: CG_TRY(TimingOutcome t, measure_official(evaluation, {id}));
#pragma once

#include "eval/rungs/timing.h"
#include "eval/sets/gpu_set.h"

namespace cutegen::eval {

struct MeasureOptions {
  std::string program_id;
  GpuSetPtr set;                           // inputs and truth at the shape; may be null
  const KernelProgram* against = nullptr;  // the incumbent
  const PreparedShape* shape = nullptr;    // a shape other than the official shape
  // Whether to stop when the program is slower than the incumbent with high confidence. Use false
  // if the decision depends on several weighted shapes together.
  bool drop_losers = true;
};
Result<TimingOutcome> measure_official(const Evaluation& e, const MeasureOptions& options);

// Rejects a program whose time is below the floor. If the time is not below the floor, but below
// the estimate Roofline::compute_ns, the detail names the roofline.
void hold_to_floor(const Roofline& floor, const Timing& timing, TimingOutcome& outcome);

// The time of one block of runs by the runner's clock (claimed_ns) and by the evaluator's clock
// (seen_ns).
struct TimedBlock {
  double claimed_ns = 0, seen_ns = 0;  // sums over the block's runs, minus the control block
  int runs = 0;
};
// Returns the sums over all blocks. `agrees` is true if the clocks agree for at least one block,
// because other work on the machine can disturb the blocks of an honest runner.
ClockCheck check_clock(const std::vector<TimedBlock>& blocks);

}  // namespace cutegen::eval
