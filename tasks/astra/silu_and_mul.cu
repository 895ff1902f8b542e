// SPDX-License-Identifier: Apache-2.0
// silu_and_mul, the baseline: one block per row, one element at a time, one division per element.
#include <cuda_fp16.h>

extern "C" __global__ void silu_and_mul(__half* __restrict__ out, const __half* __restrict__ x,
                                        int hidden) {
  const __half* gate = x + static_cast<long long>(blockIdx.x) * 2 * hidden;
  const __half* up = gate + hidden;
  __half* row = out + static_cast<long long>(blockIdx.x) * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float z = __half2float(gate[i]);
    row[i] = __float2half(z / (1.0f + expf(-z)) * __half2float(up[i]));
  }
}
