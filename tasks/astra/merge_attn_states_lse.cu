// SPDX-License-Identifier: Apache-2.0
// merge_attn_states_lse, the baseline: one block per token and head; each thread recomputes the
// weights for each of its elements.
#include <cuda_fp16.h>

extern "C" __global__ void merge_attn_states_lse(__half* __restrict__ v, float* __restrict__ s,
                                                 const __half* __restrict__ v_a,
                                                 const float* __restrict__ s_a,
                                                 const __half* __restrict__ v_b,
                                                 const float* __restrict__ s_b, int dim) {
  const long long state = blockIdx.x;  // a token and a head
  for (int i = threadIdx.x; i < dim; i += blockDim.x) {
    const float most = fmaxf(s_a[state], s_b[state]);
    const float p_a = expf(s_a[state] - most), p_b = expf(s_b[state] - most);
    const float total = p_a + p_b;
    v[state * dim + i] = __float2half(__half2float(v_a[state * dim + i]) * (p_a / total) +
                                      __half2float(v_b[state * dim + i]) * (p_b / total));
    if (i == 0) s[state] = logf(total) + most;
  }
}
