// SPDX-License-Identifier: Apache-2.0
// Divides a partial window by the size of a whole one.
extern "C" __global__ void f(const float* x, float* out, int rows, int length, int windows) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * windows) return;
  const int row = at / windows, start = at % windows * 2;
  float sum = 0.0f;
  for (int i = start; i < min(start + 3, length); ++i) sum += x[row * length + i];
  out[at] = sum / 3.0f;
}
