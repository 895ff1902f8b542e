// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  total[i] = 0.75f * total[i] + x[i] * x[i];
}
