// SPDX-License-Identifier: Apache-2.0
// What the matrix products share: the walk over tiles, and one operand's way to shared memory.
//
// Contract: an operand is a rank-2 tensor (rows, depth) in global memory of any size; what lies
// beyond its edges reads as zero. TileLoader moves tiles of Rows x Depth with all threads of the
// CTA, Vector neighbouring elements at once: along the depth if AlongDepth, else along the rows.
// The address of each vector must be a multiple of Vector elements.
//
// Example: Loader::fetch(from, where, 0, rows, depth, next); Loader::put(next, to, 0);
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/vec.cuh>

namespace cutegen {

struct TileIndex {
  int m, n;
};

// Tile number `id` of tiles_m x tiles_n. Eight rows of tiles are walked together, so that CTAs that
// run at the same time share rows of A and columns of B in the L2 cache.
CUTE_DEVICE TileIndex tile_index(int id, int tiles_m, int tiles_n) {
  constexpr int kGroup = 8;
  const int group = id / (kGroup * tiles_n), first = group * kGroup;
  const int height = cute::min(kGroup, tiles_m - first), within = id - first * tiles_n;
  return {first + within % height, within / height};
}

// How threads lie over a tile: neighbours read neighbouring vectors. Row-major or column-major.
template <int Rows, int Depth, int Threads, int Vector, bool AlongDepth>
struct TileThreads {
  static constexpr int kLine = (AlongDepth ? Depth : Rows) / Vector;  // vectors in a line
  static constexpr int kAlong = kLine < Threads ? kLine : Threads;
  static constexpr int kAcross = Threads / kAlong;
  static_assert(Rows * Depth % (Threads * Vector) == 0, "a tile gives each thread equal work");
  using Lanes = cute::conditional_t<
      AlongDepth,
      cute::Layout<cute::Shape<cute::Int<kAcross>, cute::Int<kAlong>>,
                   cute::Stride<cute::Int<kAlong>, cute::_1>>,
      cute::Layout<cute::Shape<cute::Int<kAlong>, cute::Int<kAcross>>>>;
  using Values =
      cute::conditional_t<AlongDepth, cute::Layout<cute::Shape<cute::_1, cute::Int<Vector>>>,
                          cute::Layout<cute::Shape<cute::Int<Vector>, cute::_1>>>;
};

// Global memory -> registers (fetch) -> shared memory (put), converted to Element on the way; or
// straight there, asynchronously (send). SharedLayout is (Rows, Depth, stage); Whole: a vector's
// elements are neighbours there, too.
template <class T, class Element, class SharedLayout, class Threads, bool Whole>
struct TileLoader {
  static constexpr int kVector = cute::size(typename Threads::Values{});
  static constexpr int kRows = cute::size<0>(SharedLayout{});
  static constexpr int kDepth = cute::size<1>(SharedLayout{});
  template <class E, int Count>
  using Word = cute::uint_bit_t<cute::sizeof_bits_v<E> * Count>;
  using Access = cute::Copy_Atom<cute::UniversalCopy<Word<T, kVector>>, T>;
  using Store = cute::Copy_Atom<cute::UniversalCopy<Word<Element, kVector>>, Element>;

  static CUTE_DEVICE auto threads() {
    return cute::make_tiled_copy(Access{}, typename Threads::Lanes{}, typename Threads::Values{})
        .get_slice(threadIdx.x);
  }

  // (element of the vector, row step, depth step, tile along the depth)
  template <class Global>
  static CUTE_DEVICE auto source(Global const& global, int tile) {
    return threads().partition_S(cute::local_tile(
        global, cute::make_shape(cute::Int<kRows>{}, cute::Int<kDepth>{}),
        cute::make_coord(tile, cute::_)));
  }
  // (element of the vector, row step, depth step, stage)
  static CUTE_DEVICE auto target(Element* shared) {
    return threads().partition_D(
        cute::make_tensor(cute::make_smem_ptr(shared), SharedLayout{}));
  }

  // `where` has the coordinates of `from`. Zeros where a vector lies beyond the edges.
  template <class Source, class Where, class Registers>
  static CUTE_DEVICE void fetch(Source const& from, Where const& where, int tile, int rows,
                                int depth, Registers& to) {
    CUTE_UNROLL
    for (int i = 0; i < cute::size<1>(to); ++i) {
      CUTE_UNROLL
      for (int j = 0; j < cute::size<2>(to); ++j) {
        auto at = where(0, i, j, tile);
        if (cute::get<0>(at) < rows && cute::get<1>(at) < depth)
          cute::copy(Access{}, from(cute::_, i, j, tile), to(cute::_, i, j));
        else
          cute::clear(to(cute::_, i, j));
      }
    }
  }
  template <class Registers, class Target>
  static CUTE_DEVICE void put(Registers const& from, Target const& to, int stage) {
    auto converted = cute::make_fragment_like<Element>(from);
    CUTE_UNROLL
    for (int i = 0; i < cute::size(from); ++i)
      converted(i) = static_cast<Element>(to_float(from(i)));
    CUTE_UNROLL
    for (int i = 0; i < cute::size<1>(from); ++i) {
      CUTE_UNROLL
      for (int j = 0; j < cute::size<2>(from); ++j) {
        if constexpr (Whole) {
          cute::copy(Store{}, converted(cute::_, i, j), to(cute::_, i, j, stage));
        } else {
          CUTE_UNROLL
          for (int v = 0; v < kVector; ++v) to(v, i, j, stage) = converted(v, i, j);
        }
      }
    }
  }
  template <class Source, class Where, class Target>
  static CUTE_DEVICE void send(Source const& from, Where const& where, int tile, int rows,
                               int depth, Target const& to, int stage) {
    using Async = cute::SM80_CP_ASYNC_CACHEALWAYS_ZFILL<Word<T, kVector>>;
    CUTE_UNROLL
    for (int i = 0; i < cute::size<1>(to); ++i) {
      CUTE_UNROLL
      for (int j = 0; j < cute::size<2>(to); ++j) {
        auto at = where(0, i, j, tile);
        const bool inside = cute::get<0>(at) < rows && cute::get<1>(at) < depth;
        cute::copy(cute::Copy_Atom<Async, Element>{}.with(inside), from(cute::_, i, j, tile),
                   to(cute::_, i, j, stage));
      }
    }
  }
};

}  // namespace cutegen
