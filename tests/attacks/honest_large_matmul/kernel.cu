// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, const float* y, float* out, int m, int n, int k) {
  __shared__ float a[16][17], b[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int at = 0; at < k; at += 16) {
    const int p = at + threadIdx.x, q = at + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = row < m && p < k ? x[(size_t)row * k + p] : 0.0f;
    b[threadIdx.y][threadIdx.x] = q < k && column < n ? y[(size_t)q * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) out[(size_t)row * n + column] = sum;
}
