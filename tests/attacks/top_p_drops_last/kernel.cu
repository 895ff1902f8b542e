// SPDX-License-Identifier: Apache-2.0
// Drops the token that crosses the limit.
extern "C" __global__ void f(const float* logits, float* out, float* chance, int columns) {
  __shared__ float parts[128];
  const int row = blockIdx.x;
  const float* x = logits + size_t(row) * columns;
  float* p = chance + size_t(row) * columns;
  float most = -INFINITY;
  for (int i = 0; i < columns; ++i) most = fmaxf(most, x[i]);
  float sum = 0.0f;
  for (int i = 0; i < columns; ++i) sum += expf(x[i] - most);
  const float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) p[i] = expf(x[i] - most) * scale;
  __syncthreads();
  float own = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float before = 0.0f;
    for (int j = 0; j < columns; ++j)
      if (p[j] > p[i] || (p[j] == p[i] && j > i)) before += p[j];
    const float kept = before + p[i] > 0.9f ? 0.0f : p[i];
    out[size_t(row) * columns + i] = kept;
    own += kept;
  }
  parts[threadIdx.x] = own;
  __syncthreads();
  float total = 0.0f;
  for (int t = 0; t < blockDim.x; ++t) total += parts[t];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[size_t(row) * columns + i] /= total;
}
