// SPDX-License-Identifier: Apache-2.0
// Tiles of 64 x 64, 16 deep. Each of 256 threads computes 4 x 4 results in registers.
extern "C" __global__ void multiply(const float* x, const float* y, float* out, int m, int k,
                                    int n) {
  __shared__ float a[16][65], b[16][64];
  const int across = (n + 63) / 64;
  const int row = blockIdx.x / across * 64, col = blockIdx.x % across * 64;
  const int r = threadIdx.x / 16, c = threadIdx.x % 16;
  float sum[4][4] = {};
  for (int from = 0; from < k; from += 16) {
    for (int at = threadIdx.x; at < 1024; at += 256) {
      const int i = at / 16, p = at % 16, q = at / 64, j = at % 64;
      a[p][i] = row + i < m && from + p < k ? x[(row + i) * k + from + p] : 0.0f;
      b[q][j] = from + q < k && col + j < n ? y[(from + q) * n + col + j] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 16; ++p) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = a[p][r + 16 * i], right[i] = b[p][c + 16 * i];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (row + r + 16 * i < m && col + c + 16 * j < n)
        out[(row + r + 16 * i) * n + col + c + 16 * j] = sum[i][j];
}
