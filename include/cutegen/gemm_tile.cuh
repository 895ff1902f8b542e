// SPDX-License-Identifier: Apache-2.0
// Common parts of the matrix products: the order of tiles, the loader of an operand's tiles into shared
// memory, and the main loops that overlap loading with multiplying.
//
// Contract: an operand is a rank-2 tensor (rows, depth) in global memory, of any size. Elements
// beyond its edges read as zero. A TileLoader moves tiles with all threads of the CTA. Each access
// moves Vector neighbouring elements: along the depth if AlongDepth, else along the rows. The
// address of each vector must be a multiple of Vector elements.
//
// Thread layouts are written by hand. TiledCopy would derive the same strides, but that costs a
// second of compile time for each operand.
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

// The tile with number `id` of tiles_m x tiles_n. The order walks eight rows of tiles together, so
// that CTAs that run at the same time share rows of A and columns of B in the L2 cache.
CUTE_DEVICE TileIndex tile_index(int id, int tiles_m, int tiles_n) {
  constexpr int kGroup = 8;
  const int group = id / (kGroup * tiles_n), first = group * kGroup;
  const int height = cute::min(kGroup, tiles_m - first), within = id - first * tiles_n;
  return {first + within % height, within / height};
}

// Returns which of several products side by side a tile belongs to, and makes tile.n relative to
// that product. Product p has tiles[p] columns of tiles.
template <int Parts>
CUTE_DEVICE int part_of(TileIndex& tile, const int (&tiles)[Parts]) {
  int part = 0;
  CUTE_UNROLL
  for (int p = 0; p + 1 < Parts; ++p)
    if (part == p && tile.n >= tiles[p]) tile.n -= tiles[p], ++part;
  return part;
}

// How threads cover a tile: neighbouring threads hold neighbouring vectors. For single elements, at
// most 16 threads lie along the depth (two sectors of float): more cause bank conflicts in a
// transposed tile.
template <int Rows, int Depth, int Threads, int Vector, bool AlongDepth>
struct TileThreads {
  static constexpr int kLine = (AlongDepth ? Depth : Rows) / Vector;  // vectors in a line
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

// There are two ways to load a tile into shared memory: fetch() into registers, then put() with a
// conversion to Element; or send(), an asynchronous copy. Shared::at(row, more rows, depth, more
// depth, stage) says where an element lies; the `more` parts are known at compile time.
// Shared::kWhole: whether the elements of a vector are also neighbours in shared memory.
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
  // Element v of the vector in step (i, j).
  CUTE_DEVICE Element* target(int i, int j, int v, int stage) const {
    return to_ + Shared::at(Place::row(), i * Place::kRowStep, Place::depth(),
                            j * Place::kDepthStep + v, stage);
  }

  T const* from_;
  RowStride row_stride_;
  DepthStride depth_stride_;
  // Number of rows, and of elements of the depth, from this thread's first element to the edge.
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

// Multiplies the tiles [first, last). Meanwhile it loads the next tile into registers. With two
// stages it needs one barrier for each tile, with one stage two.
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
        __syncthreads();  // all threads have read the tile that put() overwrites
      else
        stage = stage + 1 == Stages ? 0 : stage + 1;
      a.put(stage);
      b.put(stage);
      __syncthreads();
    }
  }
}

// Multiplies the tiles [first, last). Meanwhile Stages - 1 asynchronous copies are in flight.
template <int Stages, class LoadA, class LoadB, class Multiply>
CUTE_DEVICE void by_async_copies(LoadA& a, LoadB& b, int first, int last, Multiply&& multiply) {
  auto send = [&](int step, int stage) {
    if (step < last) {
      a.send(step, stage);
      b.send(step, stage);
    }
    cute::cp_async_fence();  // one group for each step, because the wait below counts groups
  };
  CUTE_UNROLL
  for (int s = 0; s + 1 < Stages; ++s) send(first + s, s);
  for (int step = first, stage = 0; step < last; ++step) {
    cute::cp_async_wait<Stages - 2>();
    __syncthreads();  // the tile has arrived, and all threads are done with the previous one
    send(step + Stages - 1, stage == 0 ? Stages - 1 : stage - 1);
    multiply(stage);
    stage = stage + 1 == Stages ? 0 : stage + 1;
  }
  cute::cp_async_wait<0>();
}

}  // namespace cutegen
