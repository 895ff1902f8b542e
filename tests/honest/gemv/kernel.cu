// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, const float* y, float* out, int k) {
  const int lane = threadIdx.x;  // one warp a row
  float sum = 0.0f;
  for (int i = lane; i < k; i += 32) sum += x[(long long)blockIdx.x * k + i] * y[i];
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (lane == 0) out[blockIdx.x] = sum;
}
