// SPDX-License-Identifier: Apache-2.0
// silu_and_mul as in production: 16-byte vectors, fast exponential and reciprocal, a scalar tail.
#include <cuda_fp16.h>

namespace {

constexpr int kHalves = 8;  // in 16 bytes

__device__ __forceinline__ float silu(float z) {
  return z * __frcp_rn(1.0f + __expf(-z));
}

__device__ __forceinline__ unsigned pair(unsigned gate, unsigned up) {
  const float2 z = __half22float2(reinterpret_cast<const __half2&>(gate));
  const float2 u = __half22float2(reinterpret_cast<const __half2&>(up));
  const __half2 r = __floats2half2_rn(silu(z.x) * u.x, silu(z.y) * u.y);
  return reinterpret_cast<const unsigned&>(r);
}

}  // namespace

extern "C" __global__ void silu_and_mul(__half* __restrict__ out, const __half* __restrict__ x,
                                        int hidden) {
  const __half* gate = x + static_cast<long long>(blockIdx.x) * 2 * hidden;
  const __half* up = gate + hidden;
  __half* row = out + static_cast<long long>(blockIdx.x) * hidden;
  const int vectors = hidden % kHalves == 0 ? hidden / kHalves : 0;  // otherwise rows are not aligned
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const uint4 g = reinterpret_cast<const uint4*>(gate)[i];
    const uint4 u = reinterpret_cast<const uint4*>(up)[i];
    reinterpret_cast<uint4*>(row)[i] =
        make_uint4(pair(g.x, u.x), pair(g.y, u.y), pair(g.z, u.z), pair(g.w, u.w));
  }
  for (int i = vectors * kHalves + threadIdx.x; i < hidden; i += blockDim.x)
    row[i] = __float2half(silu(__half2float(gate[i])) * __half2float(up[i]));
}
