// SPDX-License-Identifier: Apache-2.0
// A thread per result. It adds one term after another with fused multiply-adds, so an infinite
// partial sum keeps its sign. In PyTorch's order, infinities of both signs may meet.
extern "C" __global__ void go(const float* x, const float* y, const float* z, float* out, int batch,
                              int rows, int depth, int columns) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= batch * rows * columns) return;
  const int column = at % columns;
  const int row = at / columns % rows;
  const int image = at / columns / rows;
  float sum = 0.0f;
  for (int k = 0; k < rows; ++k) {
    float score = 0.0f;
    for (int d = 0; d < depth; ++d)
      score = fmaf(x[(image * rows + row) * depth + d], y[(image * rows + k) * depth + d], score);
    sum = fmaf(k <= row ? score : 0.0f, z[(image * rows + k) * columns + column], sum);
  }
  out[at] = sum;
}
