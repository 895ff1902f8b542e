// SPDX-License-Identifier: Apache-2.0
// Does the work of the kernel `{{arrange}}` in tf32. The emitted kernel omits this heading.

// Reorders the weights and copies the input in tf32, if a value does not fit into half precision.
extern "C" __global__ void __launch_bounds__(256)
{{arrange_wide_name}}(const {{weight_type}}* __restrict__ {{weight}}, float* __restrict__ packed,
       const {{input_type}}* __restrict__ {{input}}, float* __restrict__ turned,
       const int* __restrict__ flags, int64_t flag_count, int64_t tiles, {{arrange_sizes}}) {
  using Element = {{wide_geometry}}::Element;
  cutegen::await_previous_step();
  cutegen::allow_next_step();
  __shared__ Element shared[64 * 66];
  if (!cutegen::any_flag(flags, flag_count)) return;
  {{arrange}}_weights<{{wide_engine}}, false>({{weight}}, packed, int(blockIdx.x), int(gridDim.x), {{weight_list}});
  {{arrange}}_input<Element, false>({{input}}, turned, shared, blockIdx.x, gridDim.x, tiles, {{input_list}});
}
