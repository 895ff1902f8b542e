// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, long long* out, int n) {
  x += (long long)blockIdx.x * n;
  float best = -INFINITY;
  int at = 0x7fffffff;
  bool nan = false;
  auto take = [&](float v, int p, bool other) {
    const bool wins = other != nan ? other : other ? p < at : v > best || (v == best && p < at);
    if (wins) best = v, at = p, nan = other;
  };
  for (int p = threadIdx.x; p < n; p += 32) take(x[p], p, isnan(x[p]));
  for (int s = 16; s > 0; s /= 2) {
    const float v = __shfl_xor_sync(~0u, best, s);
    const int p = __shfl_xor_sync(~0u, at, s), other = __shfl_xor_sync(~0u, int(nan), s);
    if (p != 0x7fffffff) take(v, p, other != 0);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = at;
}
