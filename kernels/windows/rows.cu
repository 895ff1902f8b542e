// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A convolution on Hopper's tensor cores, as a product whose rows are the positions of the result.
// Kernel `{{arrange}}` reorders the weights, and makes the input channels-last. Kernel `{{name}}` then
// loads {{loads}} by TMA. Each CTA computes tiles, one after the other. A kernel may begin before
// the previous one ends, and waits before it reads that kernel's results.
#include <cute/tensor.hpp>
#include <cutegen/{{header}}.cuh>
#include <cutegen/math.cuh>
#include <cutegen/steps.cuh>

using namespace cute;

{{geometries}}
// What the plan's tensor maps load: lines of 128 bytes.
{{maps}}
// Does the work after the convolution for one element, in float32.
{{compute}}

// Reorders the weights, and rounds them to the type that the tensor cores multiply. Returns what
// cutegen::pack_weights() returns.
template <class Engine, bool Watched>
CUTE_DEVICE bool {{arrange}}_weights(const {{weight_type}}* {{weight}}, void* packed, int block, int blocks,
         int64_t in_of_group, int64_t out_of_group, int64_t kernel0, int64_t kernel1, int64_t kernel2,
         int64_t weight_o, int64_t weight_i, int64_t weight0, int64_t weight1, int64_t weight2) {
  const int kernel[] = { {{kernel}} };
{{read_weight}}
  return cutegen::pack_weights<Engine, Watched>(kernel, int(in_of_group), {{all_filters}}, read, packed,
                                                block, blocks);
}

// Copies tiles of the input to channels-last order, in the type that the tensor cores multiply: the
// first, and then every `step`-th of them. The loads of a tile overlap with the stores of the previous
// one. Returns whether all values fit (TurnedTile).
template <class Element, bool Watched, class Shared>
CUTE_DEVICE bool {{arrange}}_input(const {{input_type}}* {{input}}, void* turned, Shared* shared, int64_t tile,
       int64_t step, int64_t tiles, int64_t in_n, int64_t in_c, int64_t in0, int64_t in1, int64_t in2,
       int64_t in_s0, int64_t in_s1, int64_t in_s2, int64_t in_of_group, int64_t pitch) {
  constexpr int kVector = {{vector}};  // the plan sets it: 1 if runs of positions are not aligned
  const int positions = int(in0 * in1 * in2);
  using Turn = {{turn}};
  constexpr int kChannels = {{turned}}, kPositions = Turn::kPositions;  // of a tile
  static_assert(Turn::kElements <= 64 * 66);
  const int across = ceil_div(int(pitch), kChannels),
            tiles_of_image = across * ceil_div(positions, kPositions);
  auto at = [&](int position) -> int64_t {
    if constexpr (kVector > 1) return position;
    const int row = position / int(in2);
    return position % int(in2) * in_s2 + row % int(in1) * in_s1 + row / int(in1) * in_s0;
  };
  auto channel_of = [&](int64_t t) { return int(t % tiles_of_image) % across * kChannels; };
  auto first_of = [&](int64_t t) { return int(t % tiles_of_image) / across * kPositions; };
  Turn turn;
  auto fetch = [&](int64_t t) {
    turn.fetch({{input}} + t / tiles_of_image * in_n, in_c, positions, int(in_of_group), first_of(t),
               channel_of(t), at);
  };
  bool fits = true;
  if (tile < tiles) fetch(tile);
  for (; tile < tiles; tile += step) {
    turn.put(shared);
    __syncthreads();
    if (tile + step < tiles) fetch(tile + step);
    fits &= turn.store(shared, positions, first_of(tile), channel_of(tile),
                       static_cast<Element*>(turned) + tile / tiles_of_image * positions * {{pitch}},
                       int(pitch));
    __syncthreads();
  }
  return fits;
}

// The first `packs` CTAs reorder the weights. The others copy the input.
extern "C" __global__ void __launch_bounds__(256)
{{arrange}}(const {{weight_type}}* __restrict__ {{weight}}, {{packed_type}}* __restrict__ packed,
       const {{input_type}}* __restrict__ {{input}}, {{packed_type}}* __restrict__ turned,{{flags_param}}
       int64_t packs, int64_t tiles, {{arrange_sizes}}) {
  using Element = {{geometry}}::Element;
  cutegen::allow_next_step();
  __shared__ __align__(16) {{shared_element}} shared[64 * 66];
  [[maybe_unused]] bool fits = true;
  if (blockIdx.x < packs)
    fits = {{arrange}}_weights<{{engine}}, {{watched}}>({{weight}}, packed, int(blockIdx.x), int(packs), {{weight_list}});
  else
    fits = {{arrange}}_input<Element, {{watched}}>({{input}}, turned, shared, blockIdx.x - packs,
                                            gridDim.x - packs, tiles, {{input_list}});{{arrange_report}}
}
{{arrange_wide}}
extern "C" __global__ void __launch_bounds__({{engine}}::kThreads, 1)
{{name}}(const __grid_constant__ TmaDescriptor map_input,
       const __grid_constant__ TmaDescriptor map_weights,{{wide_params}}
       {{params}},
{{sizes}}) {
{{await}}{{leave}}  extern __shared__ __align__(1024) uint4 shared[];
  auto convolve = [&](auto conv, TmaDescriptor const& inputs, TmaDescriptor const& weights) {
    using Engine = decltype(conv);
    using G = typename Engine::Geometry;
    auto& storage = *reinterpret_cast<typename Engine::Storage*>(shared);
    const cutegen::ConvWindow window{
        { {{out}} }, { {{kernel}} },
        {-{{padding0}}, -{{padding1}}, -{{padding2}}}, { {{stride0}}, {{stride1}}, {{stride2}}},
        { {{dilation0}}, {{dilation1}}, {{dilation2}}},
        int((in_of_group + Engine::kDepth - 1) / Engine::kDepth), int({{filters}}),
        int(in_of_group + 7) / 8 * 8};
    const int all_rows = int(batches) * window.out[0] * window.out[1] * window.out[2];
    const int tiles_m = Engine::tiles(window, batches), tiles_n = ceil_div(int(out_of_group), G::kTileN / G::kSpread),
              tiles = tiles_m * tiles_n * G::kPhases;
    auto tile_of = [&](int id) { return cutegen::conv_tile<G::kPhases>(id, tiles_m, tiles_n); };
    if (threadIdx.x == 0) {
      prefetch_tma_descriptor(&inputs);
      prefetch_tma_descriptor(&weights);
    }
    conv.begin(storage);
    if (conv.produces()) {
      conv.start_loading();
{{producers_await}}      for (int id = blockIdx.x; id < tiles; id += gridDim.x)
        conv.load(inputs, weights, window, tile_of(id), storage);
      return;
    }
    conv.start_multiplying();
    for (int id = blockIdx.x; id < tiles; id += gridDim.x) {
      const auto tile = tile_of(id);
      if (conv.skips(window, tile)) continue;
      conv.multiply(window, tile, storage);
{{constants}}      // The offset of a position's first channel in each tensor.
      struct Place {
        bool inside;
        int row;  // among the positions of a consumer
        int64_t {{offsets}};
      };
      const int64_t channel0 = tile.n * (G::kTileN / G::kSpread);
      const int left = int(out_of_group - channel0);  // channels
      auto place = [&](int row, int lane, int own) {
        const int64_t channel = channel0 + lane;
        int rest = row;
        const int p2 = rest % window.out[2]{{spread2}};
        rest /= window.out[2];
        const int p1 = rest % window.out[1]{{spread1}};
        rest /= window.out[1];
        const int p0 = rest % window.out[0]{{spread0}};
        const int64_t n = rest / window.out[0];
        return Place{row < all_rows{{within}}, own{{places}}};
      };
{{channels}}
{{passes}}
{{write}}
    }
  };
{{run}}
}
