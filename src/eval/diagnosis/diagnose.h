// SPDX-License-Identifier: Apache-2.0
// Diagnoses a kernel: finds the hardware unit that limits the kernel, and the figures that show it.
//
// Contract: uses the classes and thresholds of ncu (Nsight Compute), so that both tools classify
// the same figures alike. The busier of memory and compute is the limit if it is busy at least 80%
// of the time, or if it is busy at least 60% and leads by 10 percentage points. If both are closer
// together, they are balanced. If both are below 60%, latency is the limit. The figures come from a
// GPU's counters, from the simulator's counters, or from a time and the least work of the task.
// Remarks give details, the most costly first.
//
// Example: diagnose(kernel, gpu); print(kernel.diagnosis.bound, kernel.diagnosis.summary);
#pragma once

#include "core/profile.h"
#include "gpu/spec.h"

namespace cutegen::eval {

// The least bytes and FLOPs that a task needs at a shape, and the program's time at that shape.
struct LeastWork {
  double bytes = 0, flops = 0, time_ns = 0;
  MathMode math_mode = MathMode::fp32;
};

// Classifies a kernel. The arguments are percentages of the device's peak throughput.
Bound bound_of(double compute_pct, double memory_pct);

// Diagnoses a kernel from its counters, measured or modelled. measured_ns: if the counters come
// from the simulator, the kernel's time on a GPU; 0 if unknown.
void diagnose(KernelProfile& kernel, const GpuSpec& gpu, double measured_ns = 0);
// Diagnoses a kernel without counters: computes how busy the task's least work alone keeps the
// device during the measured time.
void diagnose_by_roofline(KernelProfile& kernel, const GpuSpec& gpu, const LeastWork& work);

}  // namespace cutegen::eval
