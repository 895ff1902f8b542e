// SPDX-License-Identifier: Apache-2.0
// merge_attn_states_lse as in production: each thread merges 16 bytes of a state and computes its
// weights once; blocks of 128 threads over all states.
#include <cuda_fp16.h>

namespace {

constexpr int kHalves = 8;  // in 16 bytes

__device__ __forceinline__ unsigned merged(unsigned a, unsigned b, float w_a, float w_b) {
  const float2 p = __half22float2(reinterpret_cast<const __half2&>(a));
  const float2 q = __half22float2(reinterpret_cast<const __half2&>(b));
  const __half2 r = __floats2half2_rn(p.x * w_a + q.x * w_b, p.y * w_a + q.y * w_b);
  return reinterpret_cast<const unsigned&>(r);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    merge_attn_states_lse(__half* __restrict__ v, float* __restrict__ s,
                          const __half* __restrict__ v_a, const float* __restrict__ s_a,
                          const __half* __restrict__ v_b, const float* __restrict__ s_b, int dim,
                          int states) {
  const int vectors = dim / kHalves;  // of a state
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long state = at / vectors;
  if (state >= states) return;
  const float lse_a = s_a[state], lse_b = s_b[state];
  const float most = fmaxf(lse_a, lse_b);
  const float p_a = expf(lse_a - most), p_b = expf(lse_b - most);
  const float total = p_a + p_b;
  const float w_a = p_a / total, w_b = p_b / total;
  const uint4 a = reinterpret_cast<const uint4*>(v_a)[at];
  const uint4 b = reinterpret_cast<const uint4*>(v_b)[at];
  reinterpret_cast<uint4*>(v)[at] = make_uint4(merged(a.x, b.x, w_a, w_b), merged(a.y, b.y, w_a, w_b),
                                               merged(a.z, b.z, w_a, w_b), merged(a.w, b.w, w_a, w_b));
  if (at % vectors == 0) s[state] = logf(total) + most;
}
