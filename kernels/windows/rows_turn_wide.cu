// SPDX-License-Identifier: Apache-2.0
// Makes the input channels-last, if half precision does not fit. The emitted kernel omits this heading.

// Copies the input in tf32, if a value does not fit into half precision.
extern "C" __global__ void __launch_bounds__(256)
{{turn_wide}}(const {{input_type}}* __restrict__ {{input}}, float* __restrict__ wide_turned,
       const int* __restrict__ flags, int64_t flag_count, int64_t batches, int64_t in_n, int64_t in_c,
       int64_t in0, int64_t in1, int64_t in2, int64_t in_s0, int64_t in_s1, int64_t in_s2,
       int64_t in_of_group, int64_t pitch) {
  using Element = {{wide_geometry}}::Element;
  __shared__ Element shared[64 * 66];
  if (!cutegen::any_flag(flags, flag_count)) return;
  const int64_t tiles = ceil_div(pitch, int64_t(64)) * ceil_div(in0 * in1 * in2, int64_t(64));
  for (int64_t i = blockIdx.x; i < tiles * batches; i += gridDim.x) {
    {{turn}}_tile<Element, false>({{input}}, wide_turned, shared, int(i % tiles), i / tiles, in_n,
                                  in_c, in0, in1, in2, in_s0, in_s1, in_s2, in_of_group, pitch);
    __syncthreads();
  }
}
