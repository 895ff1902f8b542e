// SPDX-License-Identifier: Apache-2.0
// One block a head: the new key and value, the scores of the whole cache, their softmax, the sum.
extern "C" __global__ void f(const float* q, const float* k, const float* v, const long long* at,
                             float* k_cache, float* v_cache, float* out, int length, int width) {
  extern __shared__ float score[];
  __shared__ float part[128];
  int head = blockIdx.x, lane = threadIdx.x, now = int(at[0]);
  float* keys = k_cache + head * length * width;
  float* values = v_cache + head * length * width;
  for (int d = lane; d < width; d += 128) {
    keys[now * width + d] = k[head * width + d];
    values[now * width + d] = v[head * width + d];
  }
  __syncthreads();
  float most = -INFINITY;
  for (int i = lane; i < length; i += 128) {
    float dot = 0;
    for (int d = 0; d < width; ++d) dot += keys[i * width + d] * q[head * width + d];
    score[i] = dot * 0.125f;
    most = fmaxf(most, score[i]);
  }
  part[lane] = most;
  __syncthreads();
  for (int i = 0; i < 128; ++i) most = fmaxf(most, part[i]);
  __syncthreads();
  float sum = 0;
  for (int i = lane; i < length; i += 128) sum += score[i] = expf(score[i] - most);
  part[lane] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 128; ++i) sum += part[i];
  for (int d = lane; d < width; d += 128) {
    float total = 0;
    for (int i = 0; i < length; ++i) total += score[i] * values[i * width + d];
    out[head * width + d] = total / sum;
  }
}
