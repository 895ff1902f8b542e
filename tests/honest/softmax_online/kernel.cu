// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, float* out, int n) {
  x += (long long)blockIdx.x * n, out += (long long)blockIdx.x * n;
  float most = -INFINITY, sum = 0.0f;
  for (int p = threadIdx.x; p < n; p += 32) {
    const float next = fmaxf(most, x[p]);
    if (next > -INFINITY) sum = sum * expf(most - next) + expf(x[p] - next);
    most = next;
  }
  for (int s = 16; s > 0; s /= 2) {
    const float other = __shfl_xor_sync(~0u, most, s), theirs = __shfl_xor_sync(~0u, sum, s);
    const float next = fmaxf(most, other);
    if (next > -INFINITY) sum = sum * expf(most - next) + theirs * expf(other - next);
    most = next;
  }
  for (int p = threadIdx.x; p < n; p += 32) out[p] = expf(x[p] - most) / sum;
}
