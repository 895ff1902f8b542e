// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
extern "C" __global__ void go(const __nv_bfloat16* x, __nv_bfloat16* out, int n) {
  x += (long long)blockIdx.x * n, out += (long long)blockIdx.x * n;
  float most = -INFINITY, sum = 0.0f;
  for (int p = threadIdx.x; p < n; p += 32) most = fmaxf(most, __bfloat162float(x[p]));
  for (int s = 16; s > 0; s /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
  for (int p = threadIdx.x; p < n; p += 32) sum += __expf(__bfloat162float(x[p]) - most);
  for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
  for (int p = threadIdx.x; p < n; p += 32)
    out[p] = __float2bfloat16(__expf(__bfloat162float(x[p]) - most) / sum);
}
