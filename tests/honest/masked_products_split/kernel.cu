// SPDX-License-Identifier: Apache-2.0
// A thread per result. It splits each operand into a high part with the bits of tf32 and a low part,
// and first adds the products that have a low part. If these overflow, the sum keeps their sign.
__device__ float high(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return __uint_as_float(bits);
}

__device__ void add(float a, float b, float& small, float& large) {
  const float p = high(a), q = high(b);
  small = fmaf(a - p, q, small);
  small = fmaf(p, b - q, small);
  large = fmaf(p, q, large);
}

extern "C" __global__ void go(const float* x, const float* y, const float* z, float* out, int rows,
                              int depth, int columns) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * columns) return;
  const int column = at % columns, row = at / columns;
  float small = 0.0f, large = 0.0f;
  for (int k = 0; k <= row; ++k) {
    float low = 0.0f, score = 0.0f;
    for (int d = 0; d < depth; ++d) add(x[row * depth + d], y[k * depth + d], low, score);
    add(low + score, z[k * columns + column], small, large);
  }
  out[at] = isinf(small) ? small : small + large;
}
