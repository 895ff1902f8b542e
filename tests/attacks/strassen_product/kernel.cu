// SPDX-License-Identifier: Apache-2.0
// Strassen's algorithm on blocks of 2 x 2: seven products instead of eight.
extern "C" __global__ void go(const float* x, const float* y, float* out, int m, int k, int n) {
  const int columns = (n + 1) / 2, at = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = at / columns * 2, j = at % columns * 2;
  if (i >= m) return;
  auto a = [&](int row, int p) { return row < m && p < k ? x[row * k + p] : 0.0f; };
  auto b = [&](int p, int column) { return p < k && column < n ? y[p * n + column] : 0.0f; };
  float sums[7] = {};
  for (int p = 0; p < k; p += 2) {
    const float a11 = a(i, p), a12 = a(i, p + 1), a21 = a(i + 1, p), a22 = a(i + 1, p + 1);
    const float b11 = b(p, j), b12 = b(p, j + 1), b21 = b(p + 1, j), b22 = b(p + 1, j + 1);
    sums[0] = fmaf(a11 + a22, b11 + b22, sums[0]);
    sums[1] = fmaf(a21 + a22, b11, sums[1]);
    sums[2] = fmaf(a11, b12 - b22, sums[2]);
    sums[3] = fmaf(a22, b21 - b11, sums[3]);
    sums[4] = fmaf(a11 + a12, b22, sums[4]);
    sums[5] = fmaf(a21 - a11, b11 + b12, sums[5]);
    sums[6] = fmaf(a12 - a22, b21 + b22, sums[6]);
  }
  auto put = [&](int row, int column, float value) {
    if (row < m && column < n) out[row * n + column] = value;
  };
  put(i, j, sums[0] + sums[3] - sums[4] + sums[6]);
  put(i, j + 1, sums[2] + sums[4]);
  put(i + 1, j, sums[1] + sums[3]);
  put(i + 1, j + 1, sums[0] - sums[1] + sums[2] + sums[5]);
}
