// SPDX-License-Identifier: Apache-2.0
// fused_add_rmsnorm, the baseline: one block per row, one element at a time, a tree reduction in
// shared memory.
#include <cuda_fp16.h>

extern "C" __global__ void fused_add_rmsnorm(__half* __restrict__ x, __half* __restrict__ residual,
                                             const __half* __restrict__ weight, int hidden,
                                             float eps) {
  __shared__ float sums[1024];
  const long long row = static_cast<long long>(blockIdx.x) * hidden;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float total = __half2float(x[row + i]) + __half2float(residual[row + i]);
    sum += total * total;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const float scale = rsqrtf(sums[0] / hidden + eps);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float total = __half2float(x[row + i]) + __half2float(residual[row + i]);
    residual[row + i] = __float2half(total);
    x[row + i] = __float2half(total * scale * __half2float(weight[i]));
  }
}
