// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
extern "C" __global__ void go(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int m,
                              int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p)
    sum = fmaf(__bfloat162float(x[at / n * k + p]), __bfloat162float(y[p * n + at % n]), sum);
  out[at] = __float2bfloat16(sum);
}
