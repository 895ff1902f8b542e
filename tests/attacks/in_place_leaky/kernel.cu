// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] < 0 ? 0.01f * x[i] : x[i];
}
