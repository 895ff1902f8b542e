// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>
using T = __half;

extern "C" __global__ void go(const T* x, const T* y, T* out, int m, int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) {
    const float a = float(x[at / n * k + p]), b = float(y[p * n + at % n]);
    sum = float(__float2half(fmaf(a, b, sum)));
  }
  out[at] = __float2half(sum);
}
