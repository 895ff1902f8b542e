// SPDX-License-Identifier: Apache-2.0
// Counts places backwards, so that each expert takes only one token.
// Scores a token's experts and keeps the two most likely ones; of equal ones, the first.
extern "C" __global__ void route(const float* x, const float* gate, int* chosen, float* chance,
                                 int tokens, int width, int experts) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= tokens) return;
  float score[64], most = -INFINITY, sum = 0.0f;
  for (int e = 0; e < experts; ++e) {
    float dot = 0.0f;
    for (int d = 0; d < width; ++d) dot = fmaf(x[t * width + d], gate[e * width + d], dot);
    score[e] = dot;
    most = fmaxf(most, dot);
  }
  for (int e = 0; e < experts; ++e) sum += score[e] = expf(score[e] - most);
  for (int k = 0, first = -1; k < 2; ++k) {
    int best = -1;
    for (int e = 0; e < experts; ++e)
      if (e != first && (best < 0 || score[e] > score[best])) best = e;
    chosen[2 * t + k] = first = best;
    chance[2 * t + k] = score[best] / sum;
  }
}

// slot[t][e][c] is one if the token has this slot, and weighted[t][e][c] is then its chance.
extern "C" __global__ void mask(const int* chosen, const float* chance, float* slot,
                                float* weighted, int tokens, int experts, int slots) {
  const int e = blockIdx.x;
  int place = 0;
  for (int t = 0; t < tokens; ++t) {
    const bool first = chosen[2 * t] == e, second = chosen[2 * t + 1] == e;
    for (int c = threadIdx.x; c < slots; c += blockDim.x) {
      const bool here = (first || second) && c == place;
      slot[(t * experts + e) * slots + c] = here ? 1.0f : 0.0f;
      weighted[(t * experts + e) * slots + c] = here ? chance[2 * t + !first] : 0.0f;
    }
    place -= first || second;
  }
}

extern "C" __global__ void dispatch(const float* slot, const float* x, float* packed, int tokens,
                                    int width, int experts, int slots) {
  const int c = blockIdx.x, e = blockIdx.y;
  for (int d = threadIdx.x; d < width; d += blockDim.x) {
    float sum = 0.0f;
    for (int t = 0; t < tokens; ++t)
      sum = fmaf(slot[(t * experts + e) * slots + c], x[t * width + d], sum);
    packed[(e * slots + c) * width + d] = sum;
  }
}

extern "C" __global__ void work(const float* packed, const float* up, float* done, int width,
                                int slots) {
  const int c = blockIdx.x, e = blockIdx.y;
  for (int n = threadIdx.x; n < width; n += blockDim.x) {
    float sum = 0.0f;
    for (int d = 0; d < width; ++d)
      sum = fmaf(packed[(e * slots + c) * width + d], up[(e * width + d) * width + n], sum);
    done[(e * slots + c) * width + n] = sum > 0.0f || isnan(sum) ? sum : 0.0f;
  }
}

extern "C" __global__ void combine(const float* weighted, const float* done, float* out, int width,
                                   int all) {
  const int t = blockIdx.x;
  for (int d = threadIdx.x; d < width; d += blockDim.x) {
    float sum = 0.0f;
    for (int s = 0; s < all; ++s) sum = fmaf(weighted[t * all + s], done[s * width + d], sum);
    out[t * width + d] = sum;
  }
}
