// SPDX-License-Identifier: Apache-2.0
// Matrix product in float32 on the ordinary cores: C(m, n) = sum over k of A(m, k) * B(n, k).
//
// Contract: one CTA computes a tile of TileM x TileN over the tiles [first, last) of the depth.
// Any sizes; elements of A and B are converted to float when they enter shared memory. A thread
// holds blocks of 4 x 4 results. While a tile is multiplied the next one is on its way into
// registers; with two stages it is put away without a second barrier.
//
// Example: Gemm gemm; gemm.run(A, B, tile, 0, tiles, storage);
//          gemm.each(tile, [&](float const (&c)[4], int m, int n) { ... });
#pragma once

#include <cutegen/gemm_tile.cuh>

namespace cutegen {

template <class TA, class TB, int TileM, int TileN, int TileK, int Threads, int Stages, int VectorA,
          int VectorB, bool DepthA, bool DepthB>
struct SimtGemm {
  // Lanes of a warp are 8 x 4, so that its reads of shared memory are few and without conflicts.
  static constexpr int kAcross = TileN / 4 < 16 ? TileN / 4 : 16, kDown = Threads / kAcross;
  static_assert(TileM % (4 * kDown) == 0 && TileN % (4 * kAcross) == 0 && kDown % 8 == 0);
  using Lanes = cute::Layout<
      cute::Shape<cute::Shape<cute::_8, cute::Int<kDown / 8>>,
                  cute::Shape<cute::_4, cute::Int<kAcross / 4>>, cute::_1>,
      cute::Stride<cute::Stride<cute::_1, cute::_32>,
                   cute::Stride<cute::_8, cute::Int<4 * kDown>>, cute::_0>>;
  template <int Count>
  using Fours = cute::Layout<cute::Shape<cute::Int<Count>, cute::_4>,
                             cute::Stride<cute::_4, cute::_1>>;
  using Mma = decltype(cute::make_tiled_mma(
      cute::UniversalFMA<float>{}, Lanes{},
      cute::Tile<Fours<kDown>, Fours<kAcross>, cute::Underscore>{}));
  using Results = decltype(cute::partition_fragment_C(
      Mma{}, cute::make_shape(cute::Int<TileM>{}, cute::Int<TileN>{})));

  // Rows lie side by side. A tile that is turned on its way in is written in steps of a row of
  // k: four words of padding keep these out of the same bank.
  template <int Rows, bool Turned>
  using Shared = cute::Layout<
      cute::Shape<cute::Int<Rows>, cute::Int<TileK>, cute::Int<Stages>>,
      cute::Stride<cute::_1, cute::Int<Rows + 4 * Turned>, cute::Int<(Rows + 4 * Turned) * TileK>>>;
  using SharedA = Shared<TileM, DepthA>;
  using SharedB = Shared<TileN, DepthB>;
  struct alignas(16) Storage {
    float a[cute::cosize_v<SharedA>], b[cute::cosize_v<SharedB>];
  };
  using LoadA = TileLoader<TA, float, SharedA, TileThreads<TileM, TileK, Threads, VectorA, DepthA>, !DepthA>;
  using LoadB = TileLoader<TB, float, SharedB, TileThreads<TileN, TileK, Threads, VectorB, DepthB>, !DepthB>;

  Results results;

  CUTE_DEVICE SimtGemm() { cute::clear(results); }

  template <class A, class B>
  CUTE_DEVICE void run(A const& a, B const& b, TileIndex tile, int first, int last,
                       Storage& storage) {
    using namespace cute;
    const int m = size<0>(a), n = size<0>(b), depth = size<1>(a);
    auto from_a = LoadA::source(a, tile.m);
    auto from_b = LoadB::source(b, tile.n);
    auto where_a = LoadA::source(make_identity_tensor(shape(a)), tile.m);
    auto where_b = LoadB::source(make_identity_tensor(shape(b)), tile.n);
    auto to_a = LoadA::target(storage.a);
    auto to_b = LoadB::target(storage.b);
    auto next_a = make_fragment_like<TA>(from_a(_, _, _, 0));
    auto next_b = make_fragment_like<TB>(from_b(_, _, _, 0));

    auto mine = Mma{}.get_slice(threadIdx.x);
    auto shared_a = mine.partition_A(make_tensor(make_smem_ptr(storage.a), SharedA{}));
    auto shared_b = mine.partition_B(make_tensor(make_smem_ptr(storage.b), SharedB{}));
    auto part_a = mine.make_fragment_A(shared_a(_, _, _, 0));
    auto part_b = mine.make_fragment_B(shared_b(_, _, _, 0));

    if (first >= last) return;
    LoadA::fetch(from_a, where_a, first, m, depth, next_a);
    LoadB::fetch(from_b, where_b, first, n, depth, next_b);
    LoadA::put(next_a, to_a, 0);
    LoadB::put(next_b, to_b, 0);
    __syncthreads();
    for (int step = first, stage = 0; step < last; ++step) {
      if (step + 1 < last) {
        LoadA::fetch(from_a, where_a, step + 1, m, depth, next_a);
        LoadB::fetch(from_b, where_b, step + 1, n, depth, next_b);
      }
      CUTE_UNROLL
      for (int k = 0; k < TileK; ++k) {
        copy(shared_a(_, _, k, stage), part_a(_, _, k));
        copy(shared_b(_, _, k, stage), part_b(_, _, k));
        gemm(Mma{}, part_a(_, _, k), part_b(_, _, k), results);
      }
      if (step + 1 < last) {
        if constexpr (Stages == 1) __syncthreads();  // all have read the tile that is replaced
        else stage ^= 1;
        LoadA::put(next_a, to_a, stage);
        LoadB::put(next_b, to_b, stage);
        __syncthreads();
      }
    }
  }

  // Calls f(results, m, n) for every run of V neighbours along n; V divides 4.
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    using namespace cute;
    auto where = Mma{}.get_slice(threadIdx.x).partition_C(
        make_identity_tensor(make_shape(Int<TileM>{}, Int<TileN>{})));
    CUTE_UNROLL
    for (int i = 0; i < size<1>(results); ++i) {
      CUTE_UNROLL
      for (int j = 0; j < size<2>(results); j += V) {
        float c[V];
        CUTE_UNROLL
        for (int v = 0; v < V; ++v) c[v] = results(0, i, j + v);
        auto at = where(0, i, j);
        f(c, tile.m * TileM + int(get<0>(at)), tile.n * TileN + int(get<1>(at)));
      }
    }
  }
};

}  // namespace cutegen
