// SPDX-License-Identifier: Apache-2.0
// Moves the last window back into the input.
extern "C" __global__ void f(const float* x, float* out, int rows, int length, int windows) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * windows) return;
  const int row = at / windows, start = at % windows * 2;
  const int first = min(start, max(length - 3, 0)), last = min(first + 3, length);
  float sum = 0.0f;
  for (int i = first; i < last; ++i) sum += x[row * length + i];
  out[at] = sum / (last - first);
}
