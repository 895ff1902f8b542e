// SPDX-License-Identifier: Apache-2.0
// Four blocks a row; the one that is done last adds up what all have left.
extern "C" __global__ void go(const float* x, float* out, float* sums, unsigned* done, int n) {
  __shared__ bool last;
  const int row = blockIdx.x / 4, part = blockIdx.x % 4;
  float mine = 0.0f;
  for (int i = part * 128 + threadIdx.x; i < n; i += 512) mine += x[(long long)row * n + i];
  __shared__ float parts[128];
  parts[threadIdx.x] = mine;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = parts[0];
    __threadfence();
    last = atomicAdd(&done[row], 1u) == 3;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) sum += ((volatile float*)sums)[row * 4 + i];
  out[row] = sum / n;
}
