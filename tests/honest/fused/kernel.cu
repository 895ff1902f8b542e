// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, const float* w, const float* b, float* out, int m, int k, int n) {
  const int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i >= m * n) return;  // one warp an element
  float sum = 0.0f;
  for (int j = lane; j < k; j += 32) sum += x[i / n * k + j] * w[i % n * k + j];
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  sum += b[i % n];
  if (lane == 0) out[i] = (sum < 0.0f ? 0.0f : sum) * 0.5f;
}
