// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
// All blocks leave sums of quarters of rows, meet, and add them up.
extern "C" __global__ void go(const float* x, float* out, float* sums, int rows, int n) {
  __shared__ float parts[128];
  for (int unit = blockIdx.x; unit < rows * 4; unit += gridDim.x) {
    float mine = 0.0f;
    for (int i = unit % 4 * 128 + threadIdx.x; i < n; i += 512) mine += x[(long long)(unit / 4) * n + i];
    parts[threadIdx.x] = mine;
    for (int half = 64; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[unit] = parts[0];
    __syncthreads();
  }
  cooperative_groups::this_grid().sync();
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {
    float sum = 0.0f;
    for (int i = 0; i < 4; ++i) sum += sums[row * 4 + i];
    out[row] = sum / n;
  }
}
