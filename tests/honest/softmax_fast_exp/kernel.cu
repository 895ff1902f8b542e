// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, float* out, int n) {
  x += (long long)blockIdx.x * n, out += (long long)blockIdx.x * n;
  float most = -INFINITY, sum = 0.0f;
  for (int p = threadIdx.x; p < n; p += 32) most = fmaxf(most, x[p]);
  for (int s = 16; s > 0; s /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
  for (int p = threadIdx.x; p < n; p += 32) sum += __expf(x[p] - most);
  for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
  const float share = 1.0f / sum;
  for (int p = threadIdx.x; p < n; p += 32) out[p] = __expf(x[p] - most) * share;
}
