// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, const float* y, float* out, int m, int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  const int from = blockIdx.y * 64, end = min(k, from + 64);
  float sum = 0.0f;
  for (int q = from; q < end; ++q) sum = fmaf(x[at / n * k + q], y[q * n + at % n], sum);
  atomicAdd(out + at, sum);
}
