// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// {{result}} = softmax(scale * {{q}} {{k}}^T) {{v}}, for all heads. The grid has as many CTAs as the GPU
// can hold. Each CTA takes tiles of Attention::kRows rows, one after the other. A producer loads tiles of
// kKeys keys, while consumers multiply and keep a running softmax. The plan sets USE_TMA: 1 if tensor maps can describe
// q, k, v.
#include <cute/tensor.hpp>
#include <cutegen/attention_wgmma.cuh>

using namespace cute;

constexpr int kHeadDim = HEAD_DIM{{suffix}}, kValueDim = VALUE_DIM{{suffix}};
constexpr int kConsumers = {{consumers}};  // warpgroups of 64 rows
constexpr int kKeys = {{keys}}, kStages = {{stages}};
constexpr int kSplit = {{split}};  // CTAs that share the keys of a tile
constexpr bool kCausal = {{causal}};
constexpr int kVector = kSplit > 1 ? 2 : VECTOR_OUT{{suffix}};

{{constants}}
using Attention = cutegen::WgmmaAttention<{{element}}, kHeadDim, kValueDim, kConsumers, kKeys, kStages,
                                          kCausal, USE_TMA{{suffix}} == 1>;

// `group`: heads of {{q}} that share a head of {{k}}. `section`: heads whose tiles run at the same time, so
// that their keys and values stay in the L2 cache.
extern "C" __global__ void __launch_bounds__(Attention::kThreads, Attention::kResident)
{{name}}(const __grid_constant__ TmaDescriptor map_q, const __grid_constant__ TmaDescriptor map_k,
         const __grid_constant__ TmaDescriptor map_v, {{params}},
         int rows, int keys, int heads, int batches, int group, int section,
         {{strides}}) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Attention::Storage*>(shared);
  const int tiles_m = ceil_div(rows, Attention::kRows), all_heads = heads * batches;
  const int tiles = tiles_m * all_heads * kSplit;
  // With a causal mask, the rounds of a section. Otherwise, the rounds of all tiles, which have one length.
  const int turns = ceil_div(kCausal ? tiles_m * section * kSplit : tiles, int(gridDim.x));
  const int rounds = kCausal ? turns * ceil_div(all_heads, section) : turns;
  constexpr int kDiagonal = {{diagonal}};
  // A tile and its coordinates. In a section, the longest tiles come first. The order of the CTAs
  // alternates between rounds and between sections, so that all get about the same work.
  struct Work {
    cutegen::AttentionTile tile;
    int part, index, head, batch;
  };
  auto work_of = [&](int round) -> Work {
    const int in_section = kCausal ? round % turns : round, number = round / turns;
    const bool backwards = kCausal && (in_section + number) % 2 == 1;
    const int place = in_section * gridDim.x + (backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    const int first_tile = kCausal ? number * section * tiles_m * kSplit : 0;
    const int last_tile = kCausal ? min(first_tile + section * tiles_m * kSplit, tiles) : tiles;
    int id = first_tile + place;
    if (id >= last_tile) return Work{cutegen::AttentionTile{0, 0, 0}, -1, 0, 0, 0};
    const int part = id % kSplit;
    id /= kSplit;
    const int first_head = id / (tiles_m * section) * section, within = id - first_head * tiles_m;
    const int width = min(section, all_heads - first_head), index = first_head + within % width;
    const int row = (tiles_m - 1 - within / width) * Attention::kRows;
    const int key_tiles = Attention::key_tiles(row, keys, kDiagonal);
    const int step = (key_tiles + kSplit - 1) / kSplit, first = min(part * step, key_tiles);
    const cutegen::AttentionTile tile{row, first, min(first + step, key_tiles)};
    return Work{tile, part, index, index % heads, index / heads};
  };
  Attention attention;
  if (attention.begin(storage)) {
    for (int round = 0; round < rounds; ++round) {
      const auto [tile, part, index, head, batch] = work_of(round);
      if (part < 0) continue;
#if USE_TMA{{suffix}}
      attention.load(map_q, map_k, map_v, {head, head / group, batch, {{slices}}}, tile, storage);
#else
      auto view = [](auto const* from, int height, auto depth, int64_t row, int64_t along) {
        return make_tensor(make_gmem_ptr(from),
                           make_layout(make_shape(height, depth), make_stride(row, along)));
      };
      attention.load(
          view({{q}}{{q_first}} + batch * q_batch + head * q_head, rows, Int<kHeadDim>{}, q_row, q_along),
          view({{k}}{{k_first}} + batch * k_batch + head / group * k_head, keys, Int<kHeadDim>{}, k_row, k_along),
          view({{v}}{{v_first}} + batch * v_batch + head / group * v_head, keys, Int<kValueDim>{}, v_row, v_along),
          tile, storage);
#endif
    }
    return;
  }
  for (int round = 0; round < rounds; ++round) {
    const Work work = work_of(round);
    if (work.part < 0) continue;
    const int first_row = work.tile.row, head = work.head, batch = work.batch;
{{mask}}
    attention.attend(work.tile, keys, kDiagonal, {{scale}}, {{safe_part}}, mask, storage);
#if {{has_split}}
    const int64_t lines = int64_t(all_heads) * rows;
    const int64_t line = work.part * lines + int64_t(work.index) * rows + first_row;
    attention.each<kVector>([&](float const (&sum)[kVector], int row, int column) {
      if (first_row + row >= rows) return;
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v)
        if (column + v < kValueDim) partial[(line + row) * kValueDim + column + v] = sum[v];
    });
    attention.each_row([&](float exponent, int row) {
      if (first_row + row < rows) exponents[line + row] = exponent;
    });
#else
    {{out_type}}* to = {{result}} + batch * out_batch + head * out_head + first_row * out_row;
    attention.each<kVector>([&](float const (&sum)[kVector], int row, int column) {
      if (first_row + row >= rows || column >= kValueDim) return;
      cutegen::Pack<{{out_type}}, kVector> rounded;
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) rounded.element[v] = static_cast<{{out_type}}>(sum[v]);
      *reinterpret_cast<cutegen::Pack<{{out_type}}, kVector>*>(to + row * out_row +
                                                             column * out_along) = rounded;
    });
#endif
  }
  attention.end();
}
{{combine}}
