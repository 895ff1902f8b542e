// SPDX-License-Identifier: Apache-2.0
// The diagnosis of a kernel: what holds it back, with the figures that say so.
//
// Contract: classes and thresholds are those of ncu's own rule, so that both say the same of the
// same figures: a unit in use for 80% of the time binds; above 60% the side that leads by 10 points
// does, else both are balanced; below 60% the kernel waits: latency. Works from a GPU's counters,
// from the simulator's, or from a time and the task's least work alone. What is wrong in detail is
// in the remarks, the most costly first.
//
// Example: diagnose(kernel, gpu); print(kernel.diagnosis.bound, kernel.diagnosis.summary);
#pragma once

#include "core/profile.h"
#include "gpu/spec.h"

namespace cutegen::eval {

// The least that a task needs at a shape, and how long the whole program takes there.
struct LeastWork {
  double bytes = 0, flops = 0, time_ns = 0;
  std::string math_mode = "fp32";
};

// "memory", "compute", "balanced" or "latency", from shares of what the device can do, in percent.
std::string bound_of(double compute_pct, double memory_pct);

// From the kernel's counters, by its origin. measured_ns: how long a GPU takes for it, where only
// the counters are the simulator's; 0: not known.
void diagnose(KernelProfile& kernel, const GpuSpec& gpu, double measured_ns = 0);
// Where there are no counters: how much of the device the least work would keep busy.
void diagnose_by_roofline(KernelProfile& kernel, const GpuSpec& gpu, const LeastWork& work);
// Remarks from a GPU's own counters, in front of those that are there.
void remark_on_measured(KernelProfile& kernel);

}  // namespace cutegen::eval
