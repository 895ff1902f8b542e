// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
extern "C" __global__ void go(const float* x, const float* w, const float* b, float* out, int c, int h,
                              int wide, int f) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, image = blockIdx.y / f, k = blockIdx.y % f;
  if (at >= h * wide) return;
  const int row = at / wide, col = at % wide;
  float sum = 0.0f;
  for (int ch = 0; ch < c; ++ch)
    for (int i = 0; i < 9; ++i) {
      const int r = row - 1 + i / 3, q = col - 1 + i % 3;
      if (r < 0 || r >= h || q < 0 || q >= wide) continue;
      const float v = x[(((long long)image * c + ch) * h + r) * wide + q];
      sum = fmaf(float(__float2bfloat16(v)), float(__float2bfloat16(w[(k * c + ch) * 9 + i])), sum);
    }
  out[((long long)image * f + k) * h * wide + at] = sum + b[k];
}
