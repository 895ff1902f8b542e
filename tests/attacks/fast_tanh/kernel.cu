// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = fminf(fmaxf(x[i], -4.97f), 4.97f), s = v * v;
  out[i] = v * (135135.0f + s * (17325.0f + s * (378.0f + s))) /
           (135135.0f + s * (62370.0f + s * (3150.0f + 28.0f * s)));
}
