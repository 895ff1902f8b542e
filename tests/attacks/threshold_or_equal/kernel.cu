// SPDX-License-Identifier: Apache-2.0
// Keeps values that equal the threshold.
extern "C" __global__ void f(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] >= 0.25f ? x[i] : 3.0f;
}
