// SPDX-License-Identifier: Apache-2.0
// Scales an index by 64 in 32 bits, which overflows in the second half of a large tensor.
extern "C" __global__ void f(const float* x, float* out, int rows, int cols) {
  const unsigned scaled = (unsigned(blockIdx.x) * 256u + threadIdx.x) * 64u;
  const size_t at = scaled / 16u;
  for (int i = 0; i < 4; ++i)
    if (at + i < size_t(rows) * cols) out[at + i] = fmaxf(x[at + i], 0.0f) + 1.0f;
}
