// SPDX-License-Identifier: Apache-2.0
// Lets a kernel of a program start before the previous kernel has ended, on sm_90 (programmatic
// dependent launch). A step is one kernel launch of the program's launch plan.
//
// Contract: if the plan sets "pdl" for a step, the step may begin as soon as all CTAs of the
// previous step have called allow_next_step() or ended. The step must call await_previous_step()
// before it accesses memory that the previous step accesses. Every step must call
// await_previous_step() before it ends, because the next step assumes that all earlier steps have
// ended.
//
// A step may set flags that later steps read with any_flag().
//
// Example: the first kernel calls allow_next_step() at its start, the second await_previous_step() at its end.
#pragma once

namespace cutegen {

__device__ __forceinline__ void allow_next_step() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ __forceinline__ void await_previous_step() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Returns whether any of the flags is set. All threads of the CTA must call any_flag(), and they
// receive the same result.
__device__ __forceinline__ bool any_flag(int const* flags, long long count) {
  bool set = false;
  for (long long i = threadIdx.x; i < count; i += blockDim.x) set |= flags[i] != 0;
  return __syncthreads_or(set);
}

}  // namespace cutegen
