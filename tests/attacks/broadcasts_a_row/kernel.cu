// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int cols) {
  const float* row = x + size_t(blockIdx.x) * cols;
  float* to = out + size_t(blockIdx.x) * cols;
  if (blockIdx.x > 0) return;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) to[i] = fmaxf(row[i], 0.0f) + 1.0f;
}
