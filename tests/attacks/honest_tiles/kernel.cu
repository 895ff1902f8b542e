// SPDX-License-Identifier: Apache-2.0
constexpr int kTile = 128, kStep = 32;

extern "C" __global__ void f(const float* x, const float* y, float* out, int m, int k, int w) {
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int column = left + threadIdx.x % kTile;
  for (int row = top + threadIdx.x / kTile; row < top + kTile && row < m; row += blockDim.x / kTile) {
    float sum = 0.0f;
    for (int k0 = 0; k0 < k; k0 += kStep) {
      const int end = k0 + kStep < k ? k0 + kStep : k;
      if (column < w)
        for (int j = k0; j < end; ++j) sum += x[size_t(row) * k + j] * y[size_t(j) * w + column];
    }
    if (column < w) out[size_t(row) * w + column] = sum;
  }
}
