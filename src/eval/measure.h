// SPDX-License-Identifier: Apache-2.0
// The rung timing on a GPU: the official shape, measured.
//
// Contract: the time is the median of timed runs of all steps (prepare included), each with a cold
// L2, with the distribution-free 95% interval of the median; `measured`. Inputs hold the values of
// a small secret set again and again, outputs a pattern: an output that keeps it at places which
// the evaluator draws was not written, and the program fails. Values at this shape are not
// compared, which is marked. Faster than the memory's floor is rejected. More than the GPU's
// memory: skipped.
//
// Example: CG_TRY(TimingOutcome t, measure_official(ctx, services, task, prepared, id));
#pragma once

#include "eval/timing.h"

namespace cutegen {

[[nodiscard]] Result<TimingOutcome> measure_official(const Context& ctx, const Services& services,
                                                     const Task& task, const Prepared& prepared,
                                                     const std::string& program_id);

struct Median {
  double value = 0, low = 0, high = 0;
};
// Of at least one time; the interval holds the median of the distribution in 95 of 100 cases, in
// fewer where there are under six samples (the whole range then).
[[nodiscard]] Median median_of(std::vector<double> samples);

}  // namespace cutegen
