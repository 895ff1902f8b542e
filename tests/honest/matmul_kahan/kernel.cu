// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, const float* y, float* out, int m, int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0.0f, lost = 0.0f;
  for (int p = 0; p < k; ++p) {
    const float term = __fsub_rn(__fmul_rn(x[at / n * k + p], y[p * n + at % n]), lost);
    const float next = __fadd_rn(sum, term);
    lost = __fsub_rn(__fsub_rn(next, sum), term);
    sum = next;
  }
  out[at] = sum;
}
