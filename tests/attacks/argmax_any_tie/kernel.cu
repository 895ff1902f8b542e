// SPDX-License-Identifier: Apache-2.0
// Lanes take strided elements and are merged by value alone: of equal values, any may win.
extern "C" __global__ void f(const float* x, long long* out, int cols) {
  const float* row = x + size_t(blockIdx.x) * cols;
  float most = -INFINITY;
  int best = 0;
  for (int i = threadIdx.x; i < cols; i += 32)
    if (row[i] > most) most = row[i], best = i;
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_down_sync(~0u, most, step);
    int at = __shfl_down_sync(~0u, best, step);
    if (other > most) most = other, best = at;
  }
  if (threadIdx.x == 0) out[blockIdx.x] = best;
}
