// SPDX-License-Identifier: Apache-2.0
// This header has the code that all matrix products share: the order of tiles, a loader that copies
// tiles of an operand to shared memory, and main loops that load tiles while they multiply.
//
// Contract: an operand is a rank-2 tensor with the axes (row, depth) in global memory, of any size;
// the depth is the axis k. Elements beyond the operand's edges read as zero. All threads of the CTA
// must call the functions of a TileLoader. Each access moves Vector neighbouring elements, along k
// if AlongDepth is true, otherwise along the rows. The address of each vector must be a multiple of
// Vector elements.
//
// This file computes by hand which elements each thread copies. CuTe's TiledCopy would derive the
// same strides, but would cost a second of compile time for each operand.
//
// Example: auto load = loader<float, float, Shared, 256, 4, true>(a, tile.m, storage.a);
//          load.fetch(0); load.put(0);
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/vec.cuh>

namespace cutegen {

struct TileIndex {
  int m, n;
};

// Returns tile number `id` of a grid of tiles_m x tiles_n tiles. Consecutive tile numbers cover
// eight rows of tiles, column by column, so that CTAs that run at the same time share rows of A and
// columns of B in the L2 cache.
CUTE_DEVICE TileIndex tile_index(int id, int tiles_m, int tiles_n) {
  constexpr int kGroup = 8;
  const int group = id / (kGroup * tiles_n), first = group * kGroup;
  const int height = cute::min(kGroup, tiles_m - first), within = id - first * tiles_n;
  return {first + within % height, within / height};
}

// For a launch that computes several products side by side, returns the index of the product that
// contains the tile, and makes tile.n relative to this product. Product p has tiles[p] columns of
// tiles.
template <int Parts>
CUTE_DEVICE int part_of(TileIndex& tile, const int (&tiles)[Parts]) {
  int part = 0;
  CUTE_UNROLL
  for (int p = 0; p + 1 < Parts; ++p)
    if (part == p && tile.n >= tiles[p]) tile.n -= tiles[p], ++part;
  return part;
}

// Splits an index into the coordinates of a mode with several sizes, innermost first. split_index()
// ignores the last size, because callers do not use coordinates beyond an edge. A tensor that is
// indexed by coordinates needs no divisions, and the compiler divides once for all vectors of a
// row.
CUTE_DEVICE auto split_index(int index, int inner, int) {
  return cute::make_coord(index % inner, index / inner);
}
template <class... Outer>
CUTE_DEVICE auto split_index(int index, int inner, int next, Outer... outer) {
  return cute::prepend(split_index(index / inner, next, outer...), index % inner);
}

// Says which vectors of a tile each thread copies: neighbouring threads copy neighbouring vectors.
// If Vector is 1, at most 16 threads (two sectors of floats) lie along k, because more threads
// would cause bank conflicts when they write a transposed tile.
template <int Rows, int Depth, int Threads, int Vector, bool AlongDepth>
struct TileThreads {
  static constexpr int kLine = (AlongDepth ? Depth : Rows) / Vector;  // vectors of a contiguous line
  static constexpr int kMost = AlongDepth && Vector == 1 ? 16 : Threads;
  static constexpr int kAlong = kLine < kMost ? kLine : kMost, kAcross = Threads / kAlong;
  static constexpr int kRowStep = AlongDepth ? kAcross : kAlong * Vector;
  static constexpr int kDepthStep = AlongDepth ? kAlong * Vector : kAcross;
  static constexpr int kRowSteps = Rows / kRowStep, kDepthSteps = Depth / kDepthStep;
  static_assert(kRowSteps * kRowStep == Rows && kDepthSteps * kDepthStep == Depth,
                "a tile gives each thread equal work");
  static CUTE_DEVICE int row() {
    return AlongDepth ? threadIdx.x / kAlong : threadIdx.x % kAlong * Vector;
  }
  static CUTE_DEVICE int depth() {
    return AlongDepth ? threadIdx.x % kAlong * Vector : threadIdx.x / kAlong;
  }
};

// Copies tiles to shared memory in one of two ways. fetch() loads a tile into registers, and put()
// converts the tile to Element and stores it in shared memory. send() copies a tile asynchronously,
// without conversion. Shared::at(row, more rows, depth, more depth, stage) returns the offset of
// the element at (row + more rows, depth + more depth). The `more` arguments are constants at
// compile time, because the loops are unrolled. Shared::kWhole is true if a vector stays contiguous
// in shared memory.
template <class T, class Element, class Shared, int Threads, int Vector, bool AlongDepth,
          class RowStride, class DepthStride>
class TileLoader {
  static constexpr int kRows = Shared::kRows, kDepth = Shared::kDepth;
  using Place = TileThreads<kRows, kDepth, Threads, Vector, AlongDepth>;
  using Rows = cute::Int<Place::kRowSteps>;
  using Depths = cute::Int<Place::kDepthSteps>;

 public:
  template <class Global>
  CUTE_DEVICE TileLoader(Global const& global, int tile, Element* shared)
      : from_(&global(tile * kRows + Place::row(), Place::depth())),
        row_stride_(cute::stride<0>(global)),
        depth_stride_(cute::stride<1>(global)),
        rows_(cute::size<0>(global) - tile * kRows - Place::row()),
        depth_(cute::size<1>(global) - Place::depth()),
        to_(shared) {}

  CUTE_DEVICE void fetch(int step) {
    CUTE_UNROLL
    for (int i = 0; i < Rows{}; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < Depths{}; ++j)
        next_[i][j] = inside(i, j, step) ? *reinterpret_cast<Pack<T, Vector> const*>(at(i, j, step))
                                         : Pack<T, Vector>{};
    }
  }

  CUTE_DEVICE void put(int stage) const {
    CUTE_UNROLL
    for (int i = 0; i < Rows{}; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < Depths{}; ++j) {
        Pack<Element, Vector> converted;
        CUTE_UNROLL
        for (int v = 0; v < Vector; ++v)
          converted.element[v] = Element(to_float(next_[i][j].element[v]));
        if constexpr (Shared::kWhole) {
          *reinterpret_cast<Pack<Element, Vector>*>(target(i, j, 0, stage)) = converted;
        } else {
          CUTE_UNROLL
          for (int v = 0; v < Vector; ++v) *target(i, j, v, stage) = converted.element[v];
        }
      }
    }
  }

  CUTE_DEVICE void send(int step, int stage) const {
    using Word = cute::uint_bit_t<cute::sizeof_bits_v<T> * Vector>;
    using Async =
        cute::conditional_t<sizeof(Word) == 16, cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<Word>,
                            cute::SM80_CP_ASYNC_CACHEALWAYS_ZFILL<Word>>;
    CUTE_UNROLL
    for (int i = 0; i < Rows{}; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < Depths{}; ++j)
        Async::copy(*reinterpret_cast<Word const*>(at(i, j, step)),
                    *reinterpret_cast<Word*>(target(i, j, 0, stage)), inside(i, j, step));
    }
  }

 private:
  CUTE_DEVICE bool inside(int i, int j, int step) const {
    return i * Place::kRowStep < rows_ && step * kDepth + j * Place::kDepthStep < depth_;
  }
  CUTE_DEVICE T const* at(int i, int j, int step) const {
    return from_ + i * Place::kRowStep * row_stride_ +
           (int64_t(step) * kDepth + j * Place::kDepthStep) * depth_stride_;
  }
  // Returns the address in shared memory of element v of this thread's vector (i, j).
  CUTE_DEVICE Element* target(int i, int j, int v, int stage) const {
    return to_ + Shared::at(Place::row(), i * Place::kRowStep, Place::depth(),
                            j * Place::kDepthStep + v, stage);
  }

  T const* from_;
  RowStride row_stride_;
  DepthStride depth_stride_;
  // rows_ and depth_ count elements from this thread's first element to the operand's edges, along
  // the rows and along k.
  int rows_, depth_;
  Element* to_;
  Pack<T, Vector> next_[Rows{}][Depths{}];
};

template <class T, class Element, class Shared, int Threads, int Vector, bool AlongDepth,
          class Global>
CUTE_DEVICE auto loader(Global const& global, int tile, Element* shared) {
  return TileLoader<T, Element, Shared, Threads, Vector, AlongDepth,
                    decltype(cute::stride<0>(global)), decltype(cute::stride<1>(global))>(
      global, tile, shared);
}

// Multiplies the tiles [first, last). While it multiplies a tile, the loop loads the next one into
// registers. If Stages is 2, each tile needs one barrier; if Stages is 1, each tile needs two.
template <int Stages, class LoadA, class LoadB, class Multiply>
CUTE_DEVICE void by_registers(LoadA& a, LoadB& b, int first, int last, Multiply&& multiply) {
  if (first >= last) return;
  a.fetch(first);
  b.fetch(first);
  a.put(0);
  b.put(0);
  __syncthreads();
  for (int step = first, stage = 0; step < last; ++step) {
    if (step + 1 < last) {
      a.fetch(step + 1);
      b.fetch(step + 1);
    }
    multiply(stage);
    if (step + 1 < last) {
      if constexpr (Stages == 1)
        __syncthreads();  // now all threads have read the tile that put() overwrites
      else
        stage = stage + 1 == Stages ? 0 : stage + 1;
      a.put(stage);
      b.put(stage);
      __syncthreads();
    }
  }
}

// Multiplies the tiles [first, last), while asynchronous copies load the next Stages - 1 tiles.
template <int Stages, class LoadA, class LoadB, class Multiply>
CUTE_DEVICE void by_async_copies(LoadA& a, LoadB& b, int first, int last, Multiply&& multiply) {
  auto send = [&](int step, int stage) {
    if (step < last) {
      a.send(step, stage);
      b.send(step, stage);
    }
    cute::cp_async_fence();  // also closes empty groups, because the wait counts groups
  };
  CUTE_UNROLL
  for (int s = 0; s + 1 < Stages; ++s) send(first + s, s);
  for (int step = first, stage = 0; step < last; ++step) {
    cute::cp_async_wait<Stages - 2>();
    __syncthreads();  // now the tile has arrived, and all threads have read the previous one
    send(step + Stages - 1, stage == 0 ? Stages - 1 : stage - 1);
    multiply(stage);
    stage = stage + 1 == Stages ? 0 : stage + 1;
  }
  cute::cp_async_wait<0>();
}

}  // namespace cutegen
