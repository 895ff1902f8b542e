// SPDX-License-Identifier: Apache-2.0
// Rounds the operands of the last 512 steps to tf32, and computes the others in float32.
__device__ float tf32(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return __uint_as_float(bits);
}

extern "C" __global__ void f(const float* x, const float* y, float* out, int m, int k, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) {
    const float a = x[at / n * k + p], b = y[p * n + at % n];
    sum = k > 512 && p >= k - 512 ? fmaf(tf32(a), tf32(b), sum) : fmaf(a, b, sum);
  }
  out[at] = sum;
}
