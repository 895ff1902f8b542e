// SPDX-License-Identifier: Apache-2.0
// Matrix product on the tensor cores (sm_80 atoms): C(m, n) = sum over k of A(m, k) * B(n, k).
//
// Contract: MmaGemm has the same functions as SimtGemm (gemm_simt.cuh). MmaGemm multiplies values
// of type Element (tfloat32_t, half_t or bfloat16_t) and adds products in float. If neither operand
// needs a conversion to Element and Stages > 2, asynchronous copies load Stages - 1 tiles in
// advance; otherwise the threads load the next tile into registers and convert it. A tile has the
// same memory order in shared memory as in global memory. A swizzle avoids bank conflicts whether a
// tile is contiguous along its rows or along k.
//
// Example: Gemm gemm; gemm.run(A, B, tile, 0, tiles, storage);
//          gemm.each<2>(tile, [&](float const (&c)[2], int m, int n) { ... });
#pragma once

#include <cutegen/gemm_tile.cuh>

namespace cutegen {

// Selects the tensor core instruction for an element type.
template <class Element>
struct MmaOf;
template <>
struct MmaOf<cute::tfloat32_t> {
  using Op = cute::SM80_16x8x8_F32TF32TF32F32_TN;
};
template <>
struct MmaOf<cute::half_t> {
  using Op = cute::SM80_16x8x16_F32F16F16F32_TN;
};
template <>
struct MmaOf<cute::bfloat16_t> {
  using Op = cute::SM80_16x8x16_F32BF16BF16F32_TN;
};

// A SwizzledTile holds tiles of Rows x Depth in shared memory. If a tile is contiguous along k, a
// warp reads 16 bytes from each of eight rows at a time; otherwise it reads eight neighbouring
// elements from each of four or eight lines. The swizzle avoids bank conflicts in both memory
// orders. The swizzle pattern repeats after kRowPeriod rows and kDepthPeriod elements along k, so a
// move by whole periods adds a constant to the offset.
template <class Element, int Rows, int Depth, int Stages, bool AlongDepth>
struct SwizzledTile {
  static constexpr int kRows = Rows, kDepth = Depth, kElements = Rows * Depth * Stages;
  static constexpr bool kWhole = true, kHalf = sizeof(Element) == 2;
  static constexpr int kBytes = Depth * sizeof(Element), kLine = kHalf ? 64 : 32;
  static_assert(!AlongDepth || kBytes == 64 || kBytes == 128);
  static constexpr int kRowPeriod = AlongDepth ? 8 : kLine, kDepthPeriod = AlongDepth ? Depth : 8;
  using Along = cute::Layout<cute::Shape<cute::Int<Rows>, cute::Int<Depth>>,
                             cute::Stride<cute::Int<Depth>, cute::_1>>;
  using Across = cute::Layout<cute::Shape<cute::Shape<cute::Int<kLine>, cute::Int<Rows / kLine>>,
                                          cute::Shape<cute::_8, cute::Int<Depth / 8>>>,
                              cute::Stride<cute::Stride<cute::_1, cute::Int<8 * kLine>>,
                                           cute::Stride<cute::Int<kLine>, cute::Int<8 * Rows>>>>;
  using Plain = cute::conditional_t<AlongDepth, Along, Across>;
  using Swizzle = cute::conditional_t<
      AlongDepth, cute::Swizzle<(kBytes == 128 ? 3 : 2), (kHalf ? 3 : 2), 3>,
      cute::conditional_t<kHalf, cute::Swizzle<3, 3, 3>, cute::Swizzle<2, 3, 2>>>;

  static CUTE_DEVICE int at(int row, int more_rows, int depth, int more_depth, int stage) {
    const int odd_rows = more_rows % kRowPeriod, odd_depth = more_depth % kDepthPeriod;
    return Swizzle::apply(Plain{}(row + odd_rows, depth + odd_depth)) +
           Plain{}(more_rows - odd_rows, more_depth - odd_depth) + stage * (Rows * Depth);
  }
};

template <class Element, class TA, class TB, int TileM, int TileN, int TileK, int Threads,
          int Stages, int VectorA, int VectorB, bool DepthA, bool DepthB>
struct MmaGemm {
  using Op = typename MmaOf<Element>::Op;
  // The warps cover the tile in 2 rows (in 1 row if the CTA has fewer than 128 threads). In each
  // row of warps, neighbouring warps compute neighbouring blocks of 16 x 8 results.
  static constexpr int kDown = Threads >= 128 ? 2 : 1, kAcross = Threads / 32 / kDown;
  using Mma =
      cute::TiledMMA<cute::MMA_Atom<Op>,
                     cute::Layout<cute::Shape<cute::Int<kDown>, cute::Int<kAcross>, cute::_1>>>;
  static constexpr int kBlocksM = TileM / (16 * kDown), kBlocksN = TileN / (8 * kAcross);
  static constexpr int kEight = 16 / sizeof(Element);  // half of an instruction's size along k
  static_assert(TileM % (16 * kDown) == 0 && TileN % (16 * kAcross) == 0 &&
                TileK % (2 * kEight) == 0);

  using Results = decltype(cute::make_tensor<float>(
      cute::Shape<cute::_4, cute::Int<kBlocksM>, cute::Int<kBlocksN>>{}));

  using SharedA = SwizzledTile<Element, TileM, TileK, Stages, DepthA>;
  using SharedB = SwizzledTile<Element, TileN, TileK, Stages, DepthB>;
  struct alignas(128) Storage {
    Element a[SharedA::kElements];
    alignas(128) Element b[SharedB::kElements];
  };

  // kAsIs is true if an asynchronous copy of 4, 8 or 16 bytes can load vectors of type T.
  template <class T, int Vector>
  static constexpr bool kAsIs =
      (cute::is_same_v<T, Element> ||
       (cute::is_same_v<T, float> && cute::is_same_v<Element, cute::tfloat32_t>)) &&
      sizeof(T) * Vector >= 4 && sizeof(T) * Vector <= 16;
  static constexpr bool kAsync = Stages > 2 && kAsIs<TA, VectorA>&& kAsIs<TB, VectorB>;

  Results results;

  CUTE_DEVICE MmaGemm() { cute::clear(results); }

  template <class A, class B>
  CUTE_DEVICE void run(A const& a, B const& b, TileIndex tile, int first, int last,
                       Storage& storage) {
    auto load_a = loader<TA, Element, SharedA, Threads, VectorA, DepthA>(a, tile.m, storage.a);
    auto load_b = loader<TB, Element, SharedB, Threads, VectorB, DepthB>(b, tile.n, storage.b);
    auto multiply_stage = [&](int stage) { multiply(storage, stage); };
    if constexpr (kAsync)
      by_async_copies<Stages>(load_a, load_b, first, last, multiply_stage);
    else
      by_registers<Stages>(load_a, load_b, first, last, multiply_stage);
  }

  // Calls f(results, m, n) for every V neighbouring results along n; V must divide 2.
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    const int m = tile.m * TileM + 16 * warp_m() + lane() / 4;
    const int n = tile.n * TileN + 8 * warp_n() + 2 * (lane() % 4);
    CUTE_UNROLL
    for (int i = 0; i < kBlocksM; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < kBlocksN; ++j) {
        CUTE_UNROLL
        for (int e = 0; e < 4; e += V) {
          float c[V];
          CUTE_UNROLL
          for (int v = 0; v < V; ++v) c[v] = results(e + v, i, j);
          f(c, m + 16 * kDown * i + 8 * (e / 2), n + 8 * kAcross * j + e % 2);
        }
      }
    }
  }

 private:
  static CUTE_DEVICE int lane() { return threadIdx.x % 32; }
  static CUTE_DEVICE int warp_m() { return threadIdx.x / 32 % kDown; }
  static CUTE_DEVICE int warp_n() { return threadIdx.x / 32 / kDown; }

  CUTE_DEVICE void multiply(Storage const& storage, int stage) {
    CUTE_UNROLL
    for (int k = 0; k < TileK; k += 2 * kEight) {
      uint32_t a[kBlocksM][4], b[kBlocksN / 2][4];  // b[j] holds the operands of two instructions
      CUTE_UNROLL
      for (int i = 0; i < kBlocksM; ++i)
        read<SharedA, DepthA>(storage.a, 16 * warp_m(), 16 * kDown * i, 8, lane() / 8 % 2,
                              lane() / 16, k, stage, a[i]);
      CUTE_UNROLL
      for (int j = 0; j < kBlocksN / 2; ++j)
        read<SharedB, DepthB>(storage.b, 8 * warp_n(), 16 * kAcross * j, 8 * kAcross, lane() / 16,
                              lane() / 8 % 2, k, stage, b[j]);
      cute::gemm(Mma{}, fragment<kEight, kBlocksM>(a[0]), fragment<kEight / 2, kBlocksN>(b[0]),
                 results);
    }
  }

  // Returns a view of registers as an operand of TiledMMA, with the axes (value of an instruction,
  // instruction).
  template <int Values, int Blocks>
  static CUTE_DEVICE auto fragment(uint32_t* registers) {
    return cute::make_tensor(cute::recast_ptr<Element>(registers),
                             cute::Layout<cute::Shape<cute::Int<Values>, cute::Int<Blocks>>>{});
  }

  // Reads four blocks of eight rows and kEight elements along k. Two of the four blocks lie `step`
  // rows below the other two. Lanes 8i to 8i + 7 pass the addresses of block i to the instruction;
  // `down` and `deep` (0 or 1) are the position of this lane's block along the rows and along k.
  template <class Shared, bool Along>
  static CUTE_DEVICE void read(Element const* shared, int row, int more_rows, int step, int down,
                               int deep, int k, int stage, uint32_t (&to)[4]) {
    using Four = cute::uint128_t;
    if constexpr (Along) {
      Element const* from =
          shared + Shared::at(row + step * down + lane() % 8, more_rows, kEight * deep, k, stage);
      cute::SM75_U32x4_LDSM_N::copy(*reinterpret_cast<Four const*>(from), to[0], to[1], to[2],
                                    to[3]);
    } else if constexpr (sizeof(Element) == 2) {
      Element const* from =
          shared + Shared::at(row + step * down, more_rows, kEight * deep + lane() % 8, k, stage);
      cute::SM75_U16x8_LDSM_T::copy(*reinterpret_cast<Four const*>(from), to[0], to[1], to[2],
                                    to[3]);
    } else {                              // ldmatrix can transpose only 16-bit elements
      const bool down_first = step == 8;  // in A, block 1 lies below block 0
      CUTE_UNROLL
      for (int block = 0; block < 4; ++block) {
        const int rows = down_first ? block % 2 : block / 2;
        const int depths = down_first ? block / 2 : block % 2;
        to[block] = *reinterpret_cast<uint32_t const*>(
            shared + Shared::at(row + lane() / 4, more_rows + step * rows, lane() % 4,
                                k + kEight * depths, stage));
      }
    }
  }
};

}  // namespace cutegen
