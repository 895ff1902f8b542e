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
extern "C" __global__ void parts(const float* x, const float* y, float* part, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += (x[i] - y[i]) * (x[i] - y[i]);
  sum = of_block(sum, false);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
extern "C" __global__ void total(const float* part, float* out, int n) {
  float sum = of_block(part[threadIdx.x], false);
  if (threadIdx.x == 0) out[0] = sum / n;
}
