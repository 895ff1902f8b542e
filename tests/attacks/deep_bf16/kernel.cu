// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
using T = float;

extern "C" __global__ void go(const T* x, const T* y, T* out, int m, int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) {
    const float a = float(x[at / n * k + p]), b = float(y[p * n + at % n]);
    sum = fmaf(float(__float2bfloat16(a)), float(__float2bfloat16(b)), sum);
  }
  out[at] = sum;
}
