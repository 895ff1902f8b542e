// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A convolution on Hopper's tensor cores, as a product whose rows are the positions of the result.
// Kernel `{{pack}}` orders the weights, and kernel `{{turn}}` makes the input channels-last. Kernel
// `{{name}}` then loads, for each filter tap, the inputs of a tile by TMA. Each CTA computes tiles,
// one after the other.
#include <cute/tensor.hpp>
#include <cutegen/conv_rows.cuh>
#include <cutegen/math.cuh>

using namespace cute;

{{geometries}}
// What the plan's tensor maps load: lines of 128 bytes.
{{maps}}
// Does the work after the convolution for one element, in float32.
{{compute}}

// Reorders the weights, and rounds them to the type that the tensor cores multiply.
extern "C" __global__ void __launch_bounds__(256)
{{pack}}(const {{weight_type}}* __restrict__ {{weight}}, {{packed_type}}* __restrict__ packed,{{pack_params}}
         int64_t in_of_group, int64_t out_of_group, int64_t kernel0, int64_t kernel1, int64_t kernel2,
         int64_t weight_o, int64_t weight_i, int64_t weight0, int64_t weight1, int64_t weight2) {
  const int kernel[] = {int(kernel0), int(kernel1), int(kernel2)};
  auto read = [&](int64_t out, int64_t in, int k0, int k1, int k2) {
    return {{weight}}[out * weight_o + in * weight_i + k0 * weight0 + k1 * weight1 + k2 * weight2];
  };
{{pack_body}}
}
{{turn_kernel}}
extern "C" __global__ void __launch_bounds__({{engine}}::kThreads, 1)
{{name}}(const __grid_constant__ TmaDescriptor map_input,
       const __grid_constant__ TmaDescriptor map_weights,{{wide_params}}
       {{params}},
{{sizes}}) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto convolve = [&](auto conv, TmaDescriptor const& inputs, TmaDescriptor const& weights) {
    using Engine = decltype(conv);
    using G = typename Engine::Geometry;
    auto& storage = *reinterpret_cast<typename Engine::Storage*>(shared);
    const cutegen::ConvWindow window{
        {int(out0), int(out1), int(out2)}, {int(kernel0), int(kernel1), int(kernel2)},
        {-{{padding0}}, -{{padding1}}, -{{padding2}}}, { {{stride0}}, {{stride1}}, {{stride2}}},
        { {{dilation0}}, {{dilation1}}, {{dilation2}}},
        int((in_of_group + Engine::kDepth - 1) / Engine::kDepth)};
    const int all_rows = int(batches * out0 * out1 * out2), steps = window.steps();
    const int tiles_m = ceil_div(all_rows, G::kTileM), tiles_n = ceil_div(int(out_of_group), G::kTileN);
    conv.begin(storage);
    if (conv.produces()) {
      conv.start_loading();
      for (int id = blockIdx.x; id < tiles_m * tiles_n; id += gridDim.x)
        conv.load(inputs, weights, window, cutegen::tile_index(id, tiles_m, tiles_n), storage);
      return;
    }
    conv.start_multiplying();
    for (int id = blockIdx.x; id < tiles_m * tiles_n; id += gridDim.x) {
      const auto tile = cutegen::tile_index(id, tiles_m, tiles_n);
      if (conv.skips(0, steps)) continue;
      conv.multiply(0, steps, storage);
{{constants}}      // The offset of a position's first channel in each tensor.
      struct Place {
        bool inside;
        int64_t {{offsets}};
      };
      const int left = int(out_of_group) - tile.n * G::kTileN;  // channels
      const int64_t channel0 = tile.n * G::kTileN;
      auto place = [&](int row, int lane) {
        const int64_t channel = channel0 + lane;
        int rest = row;
        const int p2 = rest % int(out2);
        rest /= int(out2);
        const int p1 = rest % int(out1);
        rest /= int(out1);
        const int p0 = rest % int(out0);
        const int64_t n = rest / int(out0);
        return Place{row < all_rows{{places}}};
      };
{{channels}}
{{write}}
    }
  };
{{run}}
}
