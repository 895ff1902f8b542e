// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* q, const float* k, const float* v, float* out, int length,
                              int width) {
  const float scale = 1.0f / sqrtf(float(width));
  const long long head = (long long)blockIdx.y * length * width;
  q += head, k += head, v += head, out += head;
  const int row = blockIdx.x, c = threadIdx.x;
  float most = -INFINITY, sum = 0.0f, own = 0.0f;
  for (int at = 0; at <= row; ++at) {
    float score = 0.0f;
    for (int d = 0; d < width; ++d) score = fmaf(q[row * width + d], k[at * width + d], score);
    score *= scale;
    const float next = fmaxf(most, score), keep = most == next ? 1.0f : expf(most - next);
    const float share = expf(score - next);
    sum = sum * keep + share;
    if (c < width) own = own * keep + share * v[at * width + c];
    most = next;
  }
  if (c < width) out[row * width + c] = own / sum;
}
