// SPDX-License-Identifier: Apache-2.0
constexpr int kParts = 8;
extern "C" __global__ void part(const float* x, const float* y, float* sums, int m, int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, p = blockIdx.y;
  if (at >= m * n) return;
  const int each = (k + kParts - 1) / kParts, end = min(k, (p + 1) * each);
  float sum = 0.0f;
  for (int q = p * each; q < end; ++q) sum = fmaf(x[at / n * k + q], y[q * n + at % n], sum);
  sums[p * m * n + at] = sum;
}
extern "C" __global__ void finish(const float* sums, float* out, int count) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  float sum = 0.0f;
  for (int p = 0; p < kParts; ++p) sum += sums[p * count + at];
  out[at] = sum;
}
