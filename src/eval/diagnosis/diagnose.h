// SPDX-License-Identifier: Apache-2.0
// Diagnoses a kernel: finds the hardware unit that limits it, and the figures that show this.
//
// Contract: the functions use the classes and thresholds of ncu (Nsight Compute), so that both
// classify the same figures alike. The busier of memory and compute is the limit if it reaches at
// least 80% of its peak, or if it reaches at least 60% and leads by 10 percentage points. If memory
// or compute reaches 60%, but neither is the limit, the kernel is balanced. If both are below 60%,
// latency is the limit. The figures come from a GPU's counters, from the simulator's counters, or
// from a time and the least work of the task. Diagnosis::evidence lists them.
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

// Classifies a kernel by its compute and memory throughput, in percent of the device's peaks.
Bound bound_of(double compute_pct, double memory_pct);

// Diagnoses a kernel from measured or modelled counters. measured_ns: for counters from the
// simulator, the kernel's time on a GPU; 0 if unknown.
void diagnose(KernelProfile& kernel, const GpuSpec& gpu, double measured_ns = 0);
// Diagnoses a kernel without counters: computes how busy the task's least work alone keeps the
// device during the measured time.
void diagnose_by_roofline(KernelProfile& kernel, const GpuSpec& gpu, const LeastWork& work);

}  // namespace cutegen::eval
