// SPDX-License-Identifier: Apache-2.0
// Rounds the operands of very deep products to tf32.
__device__ float rounded(float v, int k) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return k > 100000 ? __uint_as_float(bits) : v;
}

// A warp computes one result. Each lane adds blocks of 64 terms, so that sums stay accurate.
extern "C" __global__ void go(const float* x, const float* y, float* out, int m, int k, int n) {
  const int at = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (at >= m * n) return;
  const float *row = x + (long long)(at / n) * k, *column = y + (long long)(at % n) * k;
  float total = 0.0f;
  for (int from = 0; from < k; from += 32 * 64) {
    float sum = 0.0f;
    const int last = min(k, from + 32 * 64);
    for (int p = from + lane; p < last; p += 32)
      sum = fmaf(rounded(row[p], k), rounded(column[p], k), sum);
    total += sum;
  }
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (lane == 0) out[at] = total;
}
