// SPDX-License-Identifier: Apache-2.0
// Matrix product in float32 on the CUDA cores: C(m, n) = sum over k of A(m, k) * B(n, k).
//
// Contract: one CTA computes a tile of TileM x TileN results; run() adds the products of the tiles
// [first, last) along k. Sizes are arbitrary. If both operands are float and Stages > 1,
// asynchronous copies load Stages - 1 tiles in advance; otherwise the threads load the next tile
// into registers and convert it. A thread holds blocks of 4 x 4 results.
//
// Example: Gemm gemm; gemm.run(A, B, tile, 0, tiles, storage);
//          gemm.each<4>(tile, [&](float const (&c)[4], int m, int n) { ... });
#pragma once

#include <cutegen/gemm_tile.cuh>

namespace cutegen {

// In a PaddedTile in shared memory, the elements of neighbouring rows are contiguous. If the loader
// transposes the tile (Turned), neighbouring threads write to addresses that are kLine words apart,
// and four words of padding avoid bank conflicts.
template <int Rows, int Depth, int Stages, bool Turned>
struct PaddedTile {
  static constexpr int kRows = Rows, kDepth = Depth, kLine = Rows + 4 * Turned;
  static constexpr int kElements = kLine * Depth * Stages;
  static constexpr bool kWhole = !Turned;
  using Layout = cute::Layout<cute::Shape<cute::Int<Rows>, cute::Int<Depth>, cute::Int<Stages>>,
                              cute::Stride<cute::_1, cute::Int<kLine>, cute::Int<kLine * Depth>>>;
  static CUTE_DEVICE int at(int row, int more_rows, int depth, int more_depth, int stage) {
    return Layout{}(row + more_rows, depth + more_depth, stage);
  }
};

template <class TA, class TB, int TileM, int TileN, int TileK, int Threads, int Stages, int VectorA,
          int VectorB, bool DepthA, bool DepthB>
struct SimtGemm {
  // The 32 lanes of a warp cover 8 x 4 blocks of results. An arrangement of 8 x 4 needs few reads
  // of shared memory and has no bank conflicts.
  static constexpr int kAcross = TileN / 4 < 16 ? TileN / 4 : 16, kDown = Threads / kAcross;
  static constexpr int kBlocksM = TileM / (4 * kDown), kBlocksN = TileN / (4 * kAcross);
  static_assert(TileM % (4 * kDown) == 0 && TileN % (4 * kAcross) == 0 && kDown % 8 == 0);
  using Lanes =
      cute::Layout<cute::Shape<cute::_8, cute::_4, cute::Int<kDown / 8>, cute::Int<kAcross / 4>>,
                   cute::Stride<cute::_1, cute::Int<kDown>, cute::_8, cute::Int<4 * kDown>>>;
  using Mma = cute::MMA_Atom<cute::UniversalFMA<float>>;
  template <int Blocks>
  using Part = decltype(cute::make_tensor<float>(cute::Shape<cute::_1, cute::Int<4 * Blocks>>{}));
  using Results = decltype(cute::make_tensor<float>(
      cute::Shape<cute::_1, cute::Int<4 * kBlocksM>, cute::Int<4 * kBlocksN>>{}));

  using SharedA = PaddedTile<TileM, TileK, Stages, DepthA>;
  using SharedB = PaddedTile<TileN, TileK, Stages, DepthB>;
  struct alignas(16) Storage {
    float a[SharedA::kElements], b[SharedB::kElements];
  };
  // An asynchronous copy cannot separate the elements of a vector. If asynchronous copies transpose
  // a tile, each copy therefore moves a single element.
  static constexpr bool kAsync =
      Stages > 1 && cute::is_same_v<TA, float> && cute::is_same_v<TB, float>;
  static constexpr int kVectorA = kAsync && DepthA ? 1 : VectorA;
  static constexpr int kVectorB = kAsync && DepthB ? 1 : VectorB;

  Results results;

  CUTE_DEVICE SimtGemm() { cute::clear(results); }

  template <class A, class B>
  CUTE_DEVICE void run(A const& a, B const& b, TileIndex tile, int first, int last,
                       Storage& storage) {
    auto load_a = loader<TA, float, SharedA, Threads, kVectorA, DepthA>(a, tile.m, storage.a);
    auto load_b = loader<TB, float, SharedB, Threads, kVectorB, DepthB>(b, tile.n, storage.b);
    auto multiply_stage = [&](int stage) { multiply(storage, stage); };
    if constexpr (kAsync)
      by_async_copies<Stages>(load_a, load_b, first, last, multiply_stage);
    else
      by_registers<Stages>(load_a, load_b, first, last, multiply_stage);
  }

  // Calls f(results, m, n) for every V neighbouring results along n; V must divide 4.
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    const int m = tile.m * TileM + 4 * lane_m(), n = tile.n * TileN + 4 * lane_n();
    CUTE_UNROLL
    for (int i = 0; i < 4 * kBlocksM; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < 4 * kBlocksN; j += V) {
        float c[V];
        CUTE_UNROLL
        for (int v = 0; v < V; ++v) c[v] = results(0, i, j + v);
        f(c, m + i / 4 * 4 * kDown + i % 4, n + j / 4 * 4 * kAcross + j % 4);
      }
    }
  }

 private:
  static CUTE_DEVICE int lane_m() { return Lanes{}(threadIdx.x) % kDown; }
  static CUTE_DEVICE int lane_n() { return Lanes{}(threadIdx.x) / kDown; }

  CUTE_DEVICE void multiply(Storage const& storage, int stage) {
    CUTE_UNROLL
    for (int k = 0; k < TileK; ++k) {
      Part<kBlocksM> a;
      Part<kBlocksN> b;
      read(storage.a + SharedA::at(4 * lane_m(), 0, 0, k, stage), 4 * kDown, a);
      read(storage.b + SharedB::at(4 * lane_n(), 0, 0, k, stage), 4 * kAcross, b);
      cute::gemm(Mma{}, a, b, results);
    }
  }

  // Reads blocks of four neighbouring floats, which lie `step` floats apart.
  template <class To>
  static CUTE_DEVICE void read(float const* from, int step, To& to) {
    CUTE_UNROLL
    for (int block = 0; block < cute::size(To{}) / 4; ++block) {
      auto four = *reinterpret_cast<Pack<float, 4> const*>(from + block * step);
      CUTE_UNROLL
      for (int i = 0; i < 4; ++i) to(4 * block + i) = four.element[i];
    }
  }
};

}  // namespace cutegen
