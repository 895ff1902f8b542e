// SPDX-License-Identifier: Apache-2.0
// Makes the input channels-last. The emitted kernel omits this heading.

// Copies a tile of the input to channels-last order, in the type that the tensor cores multiply.
// Returns what cutegen::turn_positions() returns.
template <class Element, bool Watched>
CUTE_DEVICE bool {{turn}}_tile(const {{input_type}}* {{input}}, void* turned, void* shared, int tile,
       int64_t n, int64_t in_n, int64_t in_c, int64_t in0, int64_t in1, int64_t in2, int64_t in_s0,
       int64_t in_s1, int64_t in_s2, int64_t in_of_group, int64_t pitch) {
  constexpr int kVector = {{vector}};  // the plan sets it: 1 if runs of positions are not aligned
  const int positions = int(in0 * in1 * in2);
  const int across = ceil_div(int(pitch), 64);
  const int channel = tile % across * 64, first = tile / across * 64;
  auto at = [&](int position) -> int64_t {
    if constexpr (kVector > 1) return position;
    const int row = position / int(in2);
    return position % int(in2) * in_s2 + row % int(in1) * in_s1 + row / int(in1) * in_s0;
  };
  return cutegen::turn_positions<Element, kVector, Watched>(
      {{input}} + n * in_n, in_c, positions, int(in_of_group), first, channel, at,
      static_cast<Element*>(turned) + n * positions * pitch, int(pitch),
      static_cast<Element*>(shared));
}

extern "C" __global__ void __launch_bounds__(256)
{{turn}}(const {{input_type}}* __restrict__ {{input}}, {{packed_type}}* __restrict__ turned,{{flags_param}}
       int64_t in_n, int64_t in_c, int64_t in0, int64_t in1, int64_t in2, int64_t in_s0, int64_t in_s1,
       int64_t in_s2, int64_t in_of_group, int64_t pitch) {
  using Element = {{geometry}}::Element;
  __shared__ Element shared[64 * 66];
  [[maybe_unused]] const bool fits = {{turn}}_tile<Element, {{watched}}>(
      {{input}}, turned, shared, int(blockIdx.x), int64_t(blockIdx.y), in_n, in_c, in0, in1, in2, in_s0,
      in_s1, in_s2, in_of_group, pitch);{{turn_report}}
}
