// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[200];
#pragma unroll
  for (int j = 0; j < 200; ++j) v[j] = x[(i + j) % n];
  float sum = 0.0f;
#pragma unroll
  for (int j = 199; j >= 0; --j) sum = sum * v[j] + v[199 - j];
  if (i < n) out[i] = sum;
}
