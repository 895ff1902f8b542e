// SPDX-License-Identifier: Apache-2.0
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

// A warp counts an expert's tokens: lane by lane, then over the lanes.
extern "C" __global__ void place(const int* chosen, int* owner, int* place, int tokens, int slots) {
  const int e = blockIdx.x, lane = threadIdx.x;
  int used = 0;
  for (int from = 0; from < tokens; from += 32) {
    const int t = from + lane;
    int which = -1;
    if (t < tokens) which = chosen[2 * t] == e ? 0 : chosen[2 * t + 1] == e ? 1 : -1;
    const unsigned takers = __ballot_sync(~0u, which >= 0);
    const int mine = used + __popc(takers & ((1u << lane) - 1));
    if (which >= 0) place[2 * t + which] = mine;
    if (which >= 0 && mine < slots) owner[e * slots + mine] = t;
    used += __popc(takers);
  }
  for (int c = used + lane; c < slots; c += 32) owner[e * slots + c] = -1;
}

extern "C" __global__ void work(const int* owner, const float* x, const float* up, float* done,
                                int width, int slots) {
  const int e = blockIdx.y, at = e * slots + blockIdx.x, t = owner[at];
  if (t < 0) return;
  for (int n = threadIdx.x; n < width; n += blockDim.x) {
    float even = 0.0f, odd = 0.0f;
    for (int d = 0; d < width; d += 2) {
      even = fmaf(x[t * width + d], up[(e * width + d) * width + n], even);
      if (d + 1 < width) odd = fmaf(x[t * width + d + 1], up[(e * width + d + 1) * width + n], odd);
    }
    const float sum = even + odd;
    done[at * width + n] = sum > 0.0f || isnan(sum) ? sum : 0.0f;
  }
}

extern "C" __global__ void combine(const int* chosen, const int* place, const float* chance,
                                   const float* done, float* out, int width, int slots) {
  const int t = blockIdx.x;
  for (int d = threadIdx.x; d < width; d += blockDim.x) {
    float sum = 0.0f;
    for (int k = 0; k < 2; ++k) {
      const int at = place[2 * t + k];
      if (at < slots)
        sum = fmaf(chance[2 * t + k], done[(chosen[2 * t + k] * slots + at) * width + d], sum);
    }
    out[t * width + d] = sum;
  }
}
