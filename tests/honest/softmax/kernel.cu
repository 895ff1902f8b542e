// SPDX-License-Identifier: Apache-2.0
__device__ float of_block(float value, bool largest) {
  __shared__ float parts[32];
  for (int half = 16; half > 0; half /= 2) {
    float other = __shfl_xor_sync(~0u, value, half);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < blockDim.x / 32; ++i)
    value = largest ? fmaxf(value, parts[i]) : value + parts[i];
  return value;
}
extern "C" __global__ void go(const float* x, float* out, int n) {
  x += (long long)blockIdx.x * n, out += (long long)blockIdx.x * n;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, x[i]);
  most = of_block(most, true);
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - most);
  sum = of_block(sum, false);
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = expf(x[i] - most) / sum;
}
