// SPDX-License-Identifier: Apache-2.0
// Matrix product on the tensor cores (sm_80 atoms): C(m, n) = sum over k of A(m, k) * B(n, k).
//
// Contract: as SimtGemm; Element (tfloat32_t, half_t, bfloat16_t) is what is multiplied, sums are
// float. Operands that are stored in Element's bits go straight to shared memory, Stages - 1 tiles
// ahead; others are converted in registers, one tile ahead. Shared tiles keep the operand's own
// direction, swizzled, so that both directions are read without conflicts.
//
// Example: Gemm gemm; gemm.run(A, B, tile, 0, tiles, storage);
//          gemm.each<2>(tile, [&](float const (&c)[2], int m, int n) { ... });
#pragma once

#include <cutegen/gemm_tile.cuh>

namespace cutegen {

// The instruction, and how its operands are read from shared memory, along the depth or across it.
template <class Element>
struct MmaOf;
template <>
struct MmaOf<cute::tfloat32_t> {
  using Op = cute::SM80_16x8x8_F32TF32TF32F32_TN;
  using ReadAlong = cute::SM75_U32x4_LDSM_N;
  using ReadAcross = cute::UniversalCopy<uint32_t>;
};
template <>
struct MmaOf<cute::half_t> {
  using Op = cute::SM80_16x8x16_F32F16F16F32_TN;
  using ReadAlong = cute::SM75_U32x4_LDSM_N;
  using ReadAcross = cute::SM75_U16x8_LDSM_T;
};
template <>
struct MmaOf<cute::bfloat16_t> {
  using Op = cute::SM80_16x8x16_F32BF16BF16F32_TN;
  using ReadAlong = cute::SM75_U32x4_LDSM_N;
  using ReadAcross = cute::SM75_U16x8_LDSM_T;
};

// (Rows, Depth, Stages), swizzled for reads of eight rows of 16 bytes (along the depth) or of eight
// neighbours in each of four or eight lines (across it).
template <class Element, int Rows, int Depth, int Stages, bool AlongDepth>
struct SwizzledTile {
  static constexpr int kBytes = Depth * sizeof(Element);
  static_assert(!AlongDepth || kBytes == 64 || kBytes == 128);
  static constexpr int kWord = sizeof(Element) == 2 ? 3 : 2;  // 16 bytes are 2^kWord elements
  using Along = decltype(cute::composition(
      cute::Swizzle<(kBytes == 128 ? 3 : 2), kWord, 3>{},
      cute::Layout<cute::Shape<cute::_8, cute::Int<Depth>>,
                   cute::Stride<cute::Int<Depth>, cute::_1>>{}));
  static constexpr int kLine = sizeof(Element) == 2 ? 64 : 32;
  using Pattern =
      cute::conditional_t<sizeof(Element) == 2, cute::Swizzle<3, 3, 3>, cute::Swizzle<2, 3, 2>>;
  using Across = decltype(cute::composition(
      Pattern{}, cute::Layout<cute::Shape<cute::Int<kLine>, cute::_8>>{}));
  using Layout = decltype(cute::tile_to_shape(
      cute::conditional_t<AlongDepth, Along, Across>{},
      cute::make_shape(cute::Int<Rows>{}, cute::Int<Depth>{}, cute::Int<Stages>{})));
};

template <class Element, class TA, class TB, int TileM, int TileN, int TileK, int Threads,
          int Stages, int VectorA, int VectorB, bool DepthA, bool DepthB>
struct MmaGemm {
  using Atom = cute::MMA_Atom<typename MmaOf<Element>::Op>;
  static constexpr int kDown = Threads >= 128 ? 2 : 1, kAcross = Threads / 32 / kDown;
  static constexpr int kAtomK = cute::size<2>(typename Atom::Shape_MNK{});
  static_assert(TileM % (16 * kDown) == 0 && TileN % (16 * kAcross) == 0);
  using Mma = decltype(cute::make_tiled_mma(
      Atom{}, cute::Layout<cute::Shape<cute::Int<kDown>, cute::Int<kAcross>, cute::_1>>{},
      cute::Tile<cute::Int<16 * kDown>, cute::Int<16 * kAcross>, cute::Int<kAtomK>>{}));
  using Results = decltype(cute::partition_fragment_C(
      Mma{}, cute::make_shape(cute::Int<TileM>{}, cute::Int<TileN>{})));
  template <bool AlongDepth>
  using Read = cute::Copy_Atom<cute::conditional_t<AlongDepth, typename MmaOf<Element>::ReadAlong,
                                                   typename MmaOf<Element>::ReadAcross>,
                               Element>;

  using SharedA = typename SwizzledTile<Element, TileM, TileK, Stages, DepthA>::Layout;
  using SharedB = typename SwizzledTile<Element, TileN, TileK, Stages, DepthB>::Layout;
  struct alignas(128) Storage {
    Element a[cute::cosize_v<SharedA>];
    alignas(128) Element b[cute::cosize_v<SharedB>];
  };

  // A copy to shared memory that passes no registers moves 4, 8 or 16 bytes.
  template <class T, int Vector>
  static constexpr bool kAsIs =
      (cute::is_same_v<T, Element> ||
       (cute::is_same_v<T, float> && cute::is_same_v<Element, cute::tfloat32_t>)) &&
      sizeof(T) * Vector >= 4;
  static constexpr bool kAsync = Stages > 2 && kAsIs<TA, VectorA> && kAsIs<TB, VectorB>;
  template <class T>
  using Stored = cute::conditional_t<kAsync, Element, T>;
  using LoadA = TileLoader<Stored<TA>, Element, SharedA,
                           TileThreads<TileM, TileK, Threads, VectorA, DepthA>, true>;
  using LoadB = TileLoader<Stored<TB>, Element, SharedB,
                           TileThreads<TileN, TileK, Threads, VectorB, DepthB>, true>;

  Results results;

  CUTE_DEVICE MmaGemm() { cute::clear(results); }

  CUTE_DEVICE void multiply(Storage& storage, int stage) {
    using namespace cute;
    Mma mma;
    auto mine = mma.get_slice(threadIdx.x);
    auto a = make_tensor(make_smem_ptr(storage.a), SharedA{});
    auto b = make_tensor(make_smem_ptr(storage.b), SharedB{});
    auto part_a = mine.partition_fragment_A(a(_, _, 0));
    auto part_b = mine.partition_fragment_B(b(_, _, 0));
    auto read_a = make_tiled_copy_A(Read<DepthA>{}, mma);
    auto read_b = make_tiled_copy_B(Read<DepthB>{}, mma);
    auto from_a = read_a.get_slice(threadIdx.x).partition_S(a);
    auto from_b = read_b.get_slice(threadIdx.x).partition_S(b);
    auto to_a = read_a.get_slice(threadIdx.x).retile_D(part_a);
    auto to_b = read_b.get_slice(threadIdx.x).retile_D(part_b);
    CUTE_UNROLL
    for (int k = 0; k < size<2>(part_a); ++k) {
      copy(read_a, from_a(_, _, k, stage), to_a(_, _, k));
      copy(read_b, from_b(_, _, k, stage), to_b(_, _, k));
      gemm(mma, part_a(_, _, k), part_b(_, _, k), results);
    }
  }

  template <class A, class B>
  CUTE_DEVICE void run(A const& a, B const& b, TileIndex tile, int first, int last,
                       Storage& storage) {
    using namespace cute;
    const int m = size<0>(a), n = size<0>(b), depth = size<1>(a);
    auto from_a = LoadA::source(recast<Stored<TA> const>(a), tile.m);
    auto from_b = LoadB::source(recast<Stored<TB> const>(b), tile.n);
    auto where_a = LoadA::source(make_identity_tensor(shape(a)), tile.m);
    auto where_b = LoadB::source(make_identity_tensor(shape(b)), tile.n);
    auto to_a = LoadA::target(storage.a);
    auto to_b = LoadB::target(storage.b);
    if constexpr (kAsync) {
      auto send = [&](int step, int stage) {
        if (step < last) {
          LoadA::send(from_a, where_a, step, m, depth, to_a, stage);
          LoadB::send(from_b, where_b, step, n, depth, to_b, stage);
        }
        cp_async_fence();  // a group for every step, so that the wait below counts right
      };
      CUTE_UNROLL
      for (int s = 0; s + 1 < Stages; ++s) send(first + s, s);
      for (int step = first, stage = 0; step < last; ++step) {
        cp_async_wait<Stages - 2>();
        __syncthreads();  // the tile is there, and all are done with the one before it
        send(step + Stages - 1, stage == 0 ? Stages - 1 : stage - 1);
        multiply(storage, stage);
        stage = stage + 1 == Stages ? 0 : stage + 1;
      }
      cp_async_wait<0>();
    } else {
      if (first >= last) return;
      auto next_a = make_fragment_like<TA>(from_a(_, _, _, 0));
      auto next_b = make_fragment_like<TB>(from_b(_, _, _, 0));
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
        multiply(storage, stage);
        if (step + 1 < last) {
          if constexpr (Stages == 1) __syncthreads();  // all have read the tile that is replaced
          else stage = stage + 1 == Stages ? 0 : stage + 1;
          LoadA::put(next_a, to_a, stage);
          LoadB::put(next_b, to_b, stage);
          __syncthreads();
        }
      }
    }
  }

  // Calls f(results, m, n) for every run of V neighbours along n; V divides 2.
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    using namespace cute;
    auto where = Mma{}.get_slice(threadIdx.x).partition_C(
        make_identity_tensor(make_shape(Int<TileM>{}, Int<TileN>{})));
    CUTE_UNROLL
    for (int i = 0; i < size<1>(results); ++i) {
      CUTE_UNROLL
      for (int j = 0; j < size<2>(results); ++j) {
        CUTE_UNROLL
        for (int e = 0; e < size<0>(results); e += V) {
          float c[V];
          CUTE_UNROLL
          for (int v = 0; v < V; ++v) c[v] = results(e + v, i, j);
          auto at = where(e, i, j);
          f(c, tile.m * TileM + int(get<0>(at)), tile.n * TileN + int(get<1>(at)));
        }
      }
    }
  }
};

}  // namespace cutegen
