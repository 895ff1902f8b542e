// SPDX-License-Identifier: Apache-2.0
// The diagnosis of a kernel: what limits it, with the figures that show it.
//
// Contract: uses ncu's classes and thresholds, so that cutegen and ncu classify the same figures
// alike. A unit that is busy at least 80% of the time is the limit. Between 60% and 80%, the unit
// that leads by 10 points is the limit; without such a lead, memory and compute are balanced. Below
// 60%, latency is the limit. The figures come from a GPU's counters, from the simulator's counters,
// or from a time and the task's least work. Remarks give details, the most costly first.
//
// Example: diagnose(kernel, gpu); print(kernel.diagnosis.bound, kernel.diagnosis.summary);
#pragma once

#include "core/profile.h"
#include "gpu/spec.h"

namespace cutegen::eval {

// The least work that a task needs at a shape, and the time of the whole program there.
struct LeastWork {
  double bytes = 0, flops = 0, time_ns = 0;
  MathMode math_mode = MathMode::fp32;
};

// "memory", "compute", "balanced" or "latency", from shares of what the device can do, in percent.
Bound bound_of(double compute_pct, double memory_pct);

// Diagnoses from the kernel's counters, measured or modelled. measured_ns: the kernel's time on a
// GPU, if only the counters come from the simulator; 0: unknown.
void diagnose(KernelProfile& kernel, const GpuSpec& gpu, double measured_ns = 0);
// Without counters: computes how busy the least work alone would keep the device.
void diagnose_by_roofline(KernelProfile& kernel, const GpuSpec& gpu, const LeastWork& work);

}  // namespace cutegen::eval
