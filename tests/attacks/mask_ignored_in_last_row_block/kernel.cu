// SPDX-License-Identifier: Apache-2.0
// Hides nothing beyond the first 32 keys.
extern "C" __global__ void f(const float* x, const float* y, float* out, int rows, int depth) {
  extern __shared__ float score[];
  const int row = blockIdx.x;
  for (int k = threadIdx.x; k < rows; k += blockDim.x) {
    float sum = 0.0f;
    for (int d = 0; d < depth; ++d) sum = fmaf(x[row * depth + d], y[k * depth + d], sum);
    const bool hidden = k > row && k < 32;
    score[k] = (hidden ? -40.0f : sum) * 0.125f;
  }
  __syncthreads();
  float most = -INFINITY, total = 0.0f;
  for (int k = 0; k < rows; ++k) most = fmaxf(most, score[k]);
  for (int k = 0; k < rows; ++k) total += expf(score[k] - most);
  for (int k = threadIdx.x; k < rows; k += blockDim.x)
    out[row * rows + k] = expf(score[k] - most) / total;
}
