// SPDX-License-Identifier: Apache-2.0
// Steps of a program that overlap on sm_90 (programmatic dependent launch).
//
// Contract: a step with "pdl" in the plan may begin as soon as all CTAs of the previous step have
// called allow_next_step() or ended. It must call await_previous_step() before it accesses memory
// that the previous step accesses, and always before it ends, because the next step relies on the
// end of both.
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

}  // namespace cutegen
