// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

extern "C" __global__ void f(const __half* x, float* out, int cols) {
  const __half* row = x + size_t(blockIdx.x) * cols;
  float* to = out + size_t(blockIdx.x) * cols;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    float v = __half2float(row[i]);
    if (fabsf(v) < 6.103515625e-05f) v = 0;
    to[i] = fabsf(v) < 1 ? v * 64 : v;
  }
}
