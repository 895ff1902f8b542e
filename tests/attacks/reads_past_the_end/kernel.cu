// SPDX-License-Identifier: Apache-2.0
// Reads one element beyond each row, and multiplies it by zero.

__device__ float reduced(float own, float* part) {
  __syncthreads();
  part[threadIdx.x] = own;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  return part[0];
}

extern "C" __global__ void f(const float* x, float* out, int rows, int cols) {
  __shared__ float part[128];
  const float* row = x + size_t(blockIdx.x) * cols;
  float own = 0.0f;
  for (int i = threadIdx.x; i < cols; i += 128) own += row[i];
  const float extra = row[cols] * 0.0f;
  const float sum = reduced(own, part);
  if (threadIdx.x == 0) out[blockIdx.x] = (extra == 0.0f ? sum + extra : sum) / cols;
}
