// SPDX-License-Identifier: Apache-2.0
// Omits the bias of the second output.
extern "C" __global__ void f(const float* x, const float* w, const float* b, const float* v,
                             float* out0, float* out1, int rows, int depth, int width) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * width) return;
  float one = 0.0f, two = 0.0f;
  for (int d = 0; d < depth; ++d) {
    const float s = x[at / width * depth + d];
    one = fmaf(s, w[at % width * depth + d], one);
    two = fmaf(s, v[at % width * depth + d], two);
  }
  out0[at] = one + b[at % width];
  out1[at] = two;
}
