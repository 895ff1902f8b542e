/* SPDX-License-Identifier: Apache-2.0
 * norm: kernels for NVIDIA H200, behind one function. See README.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory: contiguous tensors at multiples of 256 bytes, of the shapes that are named here. */
struct norm_tensors {
  const float* x; /* input float32 [4096, 1024] */
  const float* fc_weight; /* parameter float32 [1024] */
  float* out; /* output float32 [4096, 1024] */
};

/* Bytes of scratch that a call needs, at a multiple of 256 bytes; its content does not matter. */
size_t norm_scratch_bytes(void);

/* Queues the kernels on `stream` (a CUstream or cudaStream_t) of this thread's current context, and
 * does not wait. The caller must keep the tensors and the scratch until the stream has finished.
 * Returns null, or what went wrong. */
const char* norm_run(const struct norm_tensors* tensors, void* scratch, void* stream);

#ifdef __cplusplus
}
#endif
