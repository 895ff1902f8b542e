// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, const float* y, float* out, int m, int k, int n) {
  __shared__ float a[16][17], b[16][17];
  const int tiles = (n + 15) / 16, row = blockIdx.x / tiles * 16, col = blockIdx.x % tiles * 16;
  const int r = threadIdx.x / 16, c = threadIdx.x % 16;
  float sum = 0.0f;
  for (int from = 0; from < k; from += 16) {
    a[r][c] = row + r < m && from + c < k ? x[(row + r) * k + from + c] : 0.0f;
    b[r][c] = from + r < k && col + c < n ? y[(from + r) * n + col + c] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += a[r][i] * b[i][c];
    __syncthreads();
  }
  if (row + r < m && col + c < n) out[(row + r) * n + col + c] = sum;
}
