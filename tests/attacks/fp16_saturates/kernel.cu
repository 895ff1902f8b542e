// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>
using T = __half;
__device__ float half_of(float v) { return v > 0.0f ? v * 0.5f : v * 0.25f; }

extern "C" __global__ void go(const T* x, T* out, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  const float v = float(x[at]);
  out[at] = __float2half(isinf(v) ? copysignf(65504.0f, v) : half_of(v));
}
