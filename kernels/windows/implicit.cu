// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A convolution on Hopper's tensor cores, without a copy of its windows: kernel `{{pack}}` orders the
// weights, then kernel `{{name}}` multiplies patches of the input, which stay in shared memory for
// all filter taps. Each CTA computes tiles, one after the other.
#include <cute/tensor.hpp>
#include <cutegen/conv_wgmma.cuh>
#include <cutegen/math.cuh>
{{include}}
using namespace cute;

struct {{geometry}} {
  using Input = {{input_type}};
  using Element = {{element}};
  static constexpr bool kTransposed = {{transposed}}, kAlongX = {{along}};
  static constexpr int kProducts = {{products}};  // tensor core products for each product
  static constexpr bool kAligned = MISALIGNED{{suffix}} == 0;
  static constexpr int kPlanes = {{planes}};    // planes of cells in a stage
  static constexpr int kTileN = {{tile_n}};     // output channels
  static constexpr int kGroup = {{group}};      // steps in a stage of weights
  static constexpr int kPatches = {{patches}}, kWeights = {{stages}}, kRaw = {{raw}};  // stages
  static constexpr int kResident = {{resident}};
  static constexpr int kTogether = {{together}};  // channels whose work after the convolution overlaps
  static constexpr int kSlice = {{slice}};  // channels that pass through shared memory at a time
  static constexpr bool kPairs = {{pairs}};  // store two neighbouring results at once
  static constexpr int kChannelValues = {{channel_values}};  // floats per channel, for the work after it
  static constexpr int kRowValues = {{row_values}};  // floats per position, from reductions
  static constexpr int kKernelX = KERNEL2{{suffix}}, kDilationX = {{dilation2}};
  // Filter taps in a cell.
  static constexpr int kWidth = kAlongX ? 16 / int(sizeof(Element)) : 1;
  static CUTE_HOST_DEVICE constexpr int tile(int axis) {
    return axis == 0 ? {{tile0}} : axis == 1 ? {{tile1}} : {{tile2}};
  }
  static CUTE_HOST_DEVICE constexpr cutegen::ConvAxis axis(int i) {
    if (i == 0) return {KERNEL0{{suffix}}, {{stride0}}, {{padding0}}, {{dilation0}}, kTransposed};
    if (i == 1) return {KERNEL1{{suffix}}, {{stride1}}, {{padding1}}, {{dilation1}}, kTransposed};
    return {(kKernelX + kWidth - 1) / kWidth, {{stride2}}, {{padding2}}, kDilationX * kWidth,
            kTransposed};
  }
};
using {{engine}} = cutegen::Conv<{{geometry}}>;
static_assert(sizeof({{engine}}::Storage) <= {{shared}});
__constant__ const auto {{steps}} = cutegen::conv_steps<{{geometry}}>();

// Does the work after the convolution for one element, in float32.
{{compute}}

// Reorders the weights for the tiles, and rounds them to the type that the tensor cores multiply.
extern "C" __global__ void __launch_bounds__(256)
{{pack}}(const {{weight_type}}* __restrict__ {{weight}}, float* __restrict__ packed,{{flags}}
         int64_t groups, int64_t in_of_group, int64_t out_of_group, int64_t weight_o,
         int64_t weight_i, int64_t weight0, int64_t weight1, int64_t weight2) {
{{allow}}{{guard}}  using G = {{geometry}};
  const int tiles = int((out_of_group + G::kTileN - 1) / G::kTileN),
            stages = int((in_of_group + {{engine}}::kDepth - 1) / {{engine}}::kDepth);
  const int64_t all = groups * tiles * stages * {{steps}}.first[{{engine}}::kPhases] *
                      (2 * {{engine}}::kTerms * {{engine}}::kWidth * G::kTileN);
  for (int64_t i = blockIdx.x * int64_t(256) + threadIdx.x; i < all; i += int64_t(256) * gridDim.x)
    reinterpret_cast<G::Element*>(packed)[i] = cutegen::pack_weights<G>(
        {{steps}}, i, tiles, stages, int(out_of_group), int(in_of_group),
        [&](int64_t group, int64_t out, int64_t in, int k0, int k1, int k2) {
          const int64_t row = G::kTransposed ? group * in_of_group + in : group * out_of_group + out;
          const int64_t column = G::kTransposed ? out : in;
          return {{weight}}[row * weight_o + column * weight_i + k0 * weight0 + k1 * weight1 +
                            k2 * weight2];
        });
}

extern "C" __global__ void __launch_bounds__({{engine}}::kThreads, {{resident}})
{{name}}({{params}}, const float* __restrict__ packed,{{flags}}
{{sizes}}) {
{{guard}}  using G = {{geometry}};
  using L = cutegen::ConvLayout<G>;
  extern __shared__ __align__(128) uint4 shared[];
  auto& storage = *reinterpret_cast<{{engine}}::Storage*>(shared);
  const cutegen::ConvInput<G::Input> input{
      {{input}}, in_n, int(in_c), int(in_of_group), {int(in0), int(in1), int(in2)},
      {int(in_s0), int(in_s1), int(in_s2)}};
  const unsigned tiles_n = unsigned((out_of_group + G::kTileN - 1) / G::kTileN);
  const int stages = int((in_of_group + {{engine}}::kDepth - 1) / {{engine}}::kDepth);
  auto tile_of = [&](unsigned id) -> cutegen::ConvTile {
    const unsigned round = id / gridDim.x;
    const int tile_n = int(id % tiles_n);
    id /= tiles_n;
    // Phases differ in work, so a CTA takes another phase in each round.
    constexpr unsigned kPhases = L::kPhases0 * L::kPhases1;
    const int phase = int((id + (gridDim.x % (kPhases * tiles_n) == 0 ? round : 0)) % kPhases);
    id /= kPhases;
    const int tile2 = int(id % unsigned(tiles2));
    id /= unsigned(tiles2);
    const int tile1 = int(id % unsigned(tiles1));
    id /= unsigned(tiles1);
    const int tile0 = int(id % unsigned(tiles0));
    id /= unsigned(tiles0);
    return {id / unsigned(groups),
            int(id % unsigned(groups)),
            tile_n,
            phase,
            {tile0 * G::tile(0), tile1 * G::tile(1), tile2 * G::tile(2)}};
  };
  {{engine}} conv;
  conv.begin(storage, {{steps}}, stages, int(groups * tiles_n) * (L::kPhases0 * L::kPhases1));
  if (conv.produces()) {
    for (unsigned id = blockIdx.x; id < unsigned(all_tiles); id += gridDim.x) {
      const cutegen::ConvTile tile = tile_of(id);
      conv.produce(input,
                   packed + (int64_t(tile.group) * tiles_n + tile.channels) * stages *
                                {{steps}}.first[L::kPhases] * {{engine}}::kStep,
                   {{steps}}, tile, storage);
    }
    conv.end(storage);
    return;
  }
  for (unsigned id = blockIdx.x; id < unsigned(all_tiles); id += gridDim.x) {
    const cutegen::ConvTile tile = tile_of(id);
    conv.consume(input, {{steps}}, tile, storage);
    const int64_t n = tile.image;
    const int group = tile.group, phase = tile.phase;
    const int phase0 = phase / L::kPhases1, phase1 = phase % L::kPhases1;
    // The offset in the result's image.
    auto y0_of = [&](int x) {
      return G::kTransposed ? (tile.first[0] + x) * {{stride0}} + phase0 : tile.first[0] + x;
    };
    auto y1_of = [&](int x) {
      return G::kTransposed ? (tile.first[1] + x) * {{stride1}} + phase1 : tile.first[1] + x;
    };
    auto y2_of = [&](int x) {
      return G::kTransposed ? tile.first[2] * {{stride2}} + x : tile.first[2] + x;
    };
    if constexpr (G::kAlongX || G::kProducts == 3) conv.repair([&](int c, int x0, int x1, int x2) {
      const int64_t out = tile.channels * G::kTileN + c;
      if (out >= out_of_group) return 0.0f;
      return cutegen::conv_once<G>(
          input, n, group, y0_of(x0), y1_of(x1), y2_of(x2), [&](int64_t in, int k0, int k1, int k2) {
            const int64_t row = G::kTransposed ? group * in_of_group + in : group * out_of_group + out;
            const int64_t column = G::kTransposed ? out : in;
            return {{weight}}[row * weight_o + column * weight_i + k0 * weight0 + k1 * weight1 +
                              k2 * weight2];
          });
    });
{{constants}}
    // The offset of a position's first channel in each tensor.
    struct Place {
      bool inside;
      int row;  // among the positions of a consumer
      int64_t {{offsets}};
    };
    const int left = int(out_of_group) - tile.channels * G::kTileN;  // channels
    const int64_t channel0 = group * out_of_group + tile.channels * G::kTileN;
    auto place = [&](int x0, int x1, int x2, int row, int lane = 0) {
      const int64_t channel = channel0 + lane;
      const int64_t p0 = y0_of(x0), p1 = y1_of(x1), p2 = y2_of(x2);
      return Place{unsigned(p0) < unsigned(out0) && unsigned(p1) < unsigned(out1) &&
                       unsigned(p2) < unsigned(out2),
                   row{{places}}};
    };
{{channels}}
{{passes}}
{{write}}
  }
}
