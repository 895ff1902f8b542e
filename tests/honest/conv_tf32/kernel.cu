// SPDX-License-Identifier: Apache-2.0
__device__ float tf32(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return __uint_as_float(bits);
}
extern "C" __global__ void go(const float* x, const float* w, const float* b, float* out, int c, int h,
                              int wide, int f) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, image = blockIdx.y / f, k = blockIdx.y % f;
  if (at >= h * wide) return;
  const int row = at / wide, col = at % wide;
  float sum = 0.0f;
  for (int ch = 0; ch < c; ++ch)
    for (int i = 0; i < 9; ++i) {
      const int r = row - 1 + i / 3, q = col - 1 + i % 3;
      if (r < 0 || r >= h || q < 0 || q >= wide) continue;
      const float v = x[(((long long)image * c + ch) * h + r) * wide + q];
      sum = fmaf(tf32(v), tf32(w[(k * c + ch) * 9 + i]), sum);
    }
  out[((long long)image * f + k) * h * wide + at] = sum + b[k];
}
