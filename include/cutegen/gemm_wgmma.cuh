// SPDX-License-Identifier: Apache-2.0
// Matrix product on Hopper's tensor cores: C(m, n) = sum over k of A(m, k) * B(n, k).
//
// Contract: this header needs sm_90a. The kernel multiplies values of type Element (half_t or
// bfloat16_t) and adds in float. The last warpgroup or warp (the producer) loads tiles, and the
// other warpgroups (the consumers) multiply. An operand may be contiguous along k or along its
// rows; the tensor cores read either order, so the kernel transposes nothing.
//
// If Tma is true, load() takes two tensor maps with the axes (along, across, batch), and `along` is
// the contiguous axis. If Tma is false, load() takes tensors of any stride, alignment and type.
// Elements beyond the operands' edges read as zero. If a CTA computes several tiles one after the
// other, the producer loads the next tile while the consumers write results.
//
// With Cluster 2, two CTAs whose tiles are neighbours in m share the tiles of B: each CTA loads one
// half and sends it to both CTAs. With Cluster 2, compute a CTA's tile with cluster_tile(), and
// launch kCluster CTAs for each pair of tiles.
//
// If Groups is above 1, the kernel multiplies A by several matrices B. With Groups above 1, a tile
// has TileN / Groups columns of each product, and each() passes c[group][v], the results of all
// products at one position.
//
// If PingPong is true, two consumer warpgroups compute alternate tiles: one writes its results
// while the other multiplies. With PingPong, each consumer must call skips() for every tile of the
// CTA.
//
// If Kept is above 0, the tiles of B stay in shared memory: load_by() loads them for the first tile
// of the CTA only. With Kept, all result tiles of a CTA must have the same columns, `first` must be
// 0, and `last` must be at most Kept.
//
// The producer and the consumers have separate loops over the same tiles, because the producer
// warpgroup gives most of its registers to the consumers.
//
// Example: Gemm gemm; gemm.begin(storage);
//          if (gemm.produces()) {
//            gemm.start_loading();
//            for (int id = blockIdx.x; id < tiles; id += gridDim.x)
//              gemm.load(map_a, map_b, 0, 0, tile_of(id), 0, tiles_k, storage);
//          } else {
//            gemm.start_multiplying();
//            for (int id = blockIdx.x; id < tiles; id += gridDim.x) {
//              gemm.multiply(0, tiles_k, storage);
//              gemm.each<2>(tile_of(id), [&](float const (&c)[2], int m, int n) { ... });
//            }
//          }
//          gemm.end();
#pragma once

#include <cute/arch/copy_sm90_desc.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cutlass/arch/reg_reconfig.h>
#include <cutegen/gemm_tile.cuh>

namespace cutegen {

// Returns the tile of CTA `id`. The tiles of the CTAs of a cluster are neighbours in m.
template <int Cluster>
CUTE_DEVICE TileIndex cluster_tile(int id, int tiles_m, int tiles_n) {
  const TileIndex pair = tile_index(id / Cluster, cute::ceil_div(tiles_m, Cluster), tiles_n);
  return {pair.m * Cluster + id % Cluster, pair.n};
}

// Two consumer warpgroups, of threads 0 to 127 and 128 to 255, take turns with the tiles of a CTA.
// Barrier i of `order`, with a count of 4, lets consumer i multiply its next tile. wait_for_turn()
// waits until the other consumer has multiplied tile `turn` - 1. Without wait_for_turn(), a
// consumer could be two phases ahead at the barrier of a stage. The barrier distinguishes only even
// and odd phases, so it would let the consumer pass too early.
CUTE_DEVICE void wait_for_turn(uint64_t (&order)[2], int turn) {
  const int consumer = threadIdx.x / 128;
  cute::wait_barrier(order[consumer], turn / 2 % 2 ^ (consumer == 0));
}
CUTE_DEVICE void end_turn(uint64_t (&order)[2]) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) cute::arrive_barrier(order[threadIdx.x / 128 ^ 1]);
}

// A LineTile has the layout in shared memory that wgmma reads. A tile consists of lines of 128
// bytes along the contiguous axis, and the eight 16-byte chunks of a line are swizzled. If the
// contiguous axis is not k, a tile consists of several blocks side by side, each one line wide.
template <class Element, int Rows, bool AlongDepth>
struct LineTile {
  static constexpr int kLine = 128 / sizeof(Element), kDepth = kLine, kChunk = kLine / 8;
  static constexpr int kElements = Rows * kDepth;
  static constexpr auto kMajor =
      AlongDepth ? cute::SM90::GMMA::Major::K : cute::SM90::GMMA::Major::MN;
  using Atom = cute::conditional_t<AlongDepth, cute::GMMA::Layout_K_SW128_Atom<Element>,
                                   cute::GMMA::Layout_MN_SW128_Atom<Element>>;
  using Order = cute::conditional_t<AlongDepth, cute::Step<cute::_1, cute::_2>,
                                    cute::Step<cute::_2, cute::_1>>;
  using Layout = decltype(cute::tile_to_shape(
      Atom{}, cute::Shape<cute::Int<Rows>, cute::Int<kDepth>>{}, Order{}));
  // Returns the offset of a 16-byte chunk. `along` is the chunk's position (in elements) on the
  // contiguous axis, and `across` its position on the other axis.
  static CUTE_DEVICE int at(int along, int across) {
    const int block = AlongDepth ? 0 : along / kLine, chunk = along % kLine / kChunk;
    return block * (kLine * kDepth) + across * kLine + (chunk ^ across % 8) * kChunk;
  }
  // Returns the descriptor of the first instruction's operand, which has kRows rows.
  template <int kRows>
  static CUTE_DEVICE cute::SM90::GMMA::DescriptorIterator descriptor(Element const* tile) {
    auto whole = cute::make_tensor(cute::make_smem_ptr(tile), Layout{});
    return {cute::SM90::GMMA::make_gmma_desc<kMajor>(
        cute::local_tile(whole, cute::Shape<cute::Int<kRows>, cute::Int<kLine / 4>>{},
                         cute::make_coord(0, 0)))};
  }
  // The operands of successive instructions along k lie kStep * 16 bytes apart.
  static constexpr int kStep = AlongDepth ? 2 : kLine / 4 * 128 / 16;
};

// Before the call, each of four lanes holds two columns of each of four groups of 8 columns, at
// from[first + 4 * group]. gather_columns() transposes these 4 x 4 pairs by shuffles. After the
// call, each lane holds all 8 columns of one group.
template <int Size>
CUTE_DEVICE void gather_columns(float const (&from)[Size], int first, float (&to)[8]) {
  CUTE_UNROLL
  for (int i = 0; i < 8; ++i) to[i] = from[first + i / 2 * 4 + i % 2];
  CUTE_UNROLL
  for (int step = 1; step < 4; step *= 2) {
    const bool upper = threadIdx.x & step;
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {  // exchanges elements `low` and `high` of two pairs
      const int pair = step == 1 ? i / 2 * 2 : i / 2, low = 2 * pair + i % 2, high = low + 2 * step;
      const float got = __shfl_xor_sync(0xffffffffu, upper ? to[low] : to[high], step);
      to[low] = upper ? got : to[low];
      to[high] = upper ? to[high] : got;
    }
  }
}

// Before the call, each of four lanes holds two columns of each of two groups of 8 columns, at
// from[first] and from[first + 4]. Afterwards, each even lane holds four neighbouring columns of
// the first group, and each odd lane four of the second group.
template <int Size>
CUTE_DEVICE void gather_four(float const (&from)[Size], int first, float (&to)[4]) {
  const bool odd = threadIdx.x & 1;
  CUTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float low = from[first + i], high = from[first + 4 + i];
    const float got = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
    to[i] = odd ? got : low;
    to[2 + i] = odd ? high : got;
  }
}

// Before the call, each of four lanes holds one word of each of four groups. Afterwards, lane i holds
// the four words of group i.
CUTE_DEVICE void gather_words(uint32_t (&words)[4]) {
  CUTE_UNROLL
  for (int step = 1; step < 4; step *= 2) {
    const bool upper = threadIdx.x & step;
    CUTE_UNROLL
    for (int pair = 0; pair < 2; ++pair) {  // exchanges words `low` and `high`
      const int low = step == 1 ? 2 * pair : pair, high = low + step;
      const uint32_t got =
          __shfl_xor_sync(0xffffffffu, upper ? words[low] : words[high], step);
      words[low] = upper ? got : words[low];
      words[high] = upper ? words[high] : got;
    }
  }
}

// ColumnMaps has the tensor maps of B, one for each product. Column 0 of a product is row `first`
// of its map.
template <int Groups>
struct ColumnMaps {
  cute::TmaDescriptor const* map[Groups];
  int batch[Groups], first[Groups];
};

// Copies tiles of an operand without TMA. A thread fills chunks of 16 bytes in shared memory with
// accesses of Vector elements. A tile has Rows / Groups rows of each of the `Groups` tensors.
template <class T, class Element, int Rows, int Vector, bool AlongDepth, class RowStride,
          class DepthStride, int Groups = 1>
class ChunkLoader {
  using Tile = LineTile<Element, Rows, AlongDepth>;
  static constexpr int kGroupRows = Rows / Groups;
  static constexpr int kChunk = Tile::kChunk, kDepth = Tile::kDepth;
  static constexpr int kAlong = kDepth / kChunk;  // a line has kAlong chunks
  static constexpr int kLines = AlongDepth ? Rows : kDepth, kLineStep = 128 / kAlong;
  static constexpr int kBlocks = AlongDepth ? 1 : Rows / kDepth;
  static constexpr int kBytes = Vector * sizeof(T);
  static constexpr bool kAsync = cute::is_same_v<T, Element> && kBytes >= 4;

 public:
  template <class Global>
  CUTE_DEVICE ChunkLoader(Global const (&globals)[Groups], int tile, int first, int thread)
      : thread_(thread), depth_(cute::size<1>(globals[0]) - first * kDepth) {
    CUTE_UNROLL
    for (int g = 0; g < Groups; ++g) {
      from_[g] = &globals[g](tile * kGroupRows, first * kDepth);
      row_stride_[g] = cute::stride<0>(globals[g]);
      depth_stride_[g] = cute::stride<1>(globals[g]);
      rows_[g] = cute::size<0>(globals[g]) - tile * kGroupRows;
    }
  }

  // Starts to copy the next tile. The copies may still be in flight when send() returns.
  CUTE_DEVICE void send(Element* to) {
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      const int along = thread_ % kAlong * kChunk + block * kDepth;
      CUTE_UNROLL
      for (int i = 0; i < kLines / kLineStep; ++i) {
        const int across = thread_ / kAlong + i * kLineStep;
        const int group = (AlongDepth ? i * kLineStep : block * kDepth) / kGroupRows;
        move(along, across, group, to + Tile::at(along, across));
      }
    }
    CUTE_UNROLL
    for (int g = 0; g < Groups; ++g) from_[g] += kDepth * depth_stride_[g];
    depth_ -= kDepth;
  }

 private:
  static_assert(kGroupRows % (AlongDepth ? kLineStep : kDepth) == 0);

  CUTE_DEVICE void move(int along, int across, int group, Element* to) const {
    const int row = (AlongDepth ? across : along) % kGroupRows, depth = AlongDepth ? along : across;
    const int rows = rows_[group] - row, depths = depth_ - depth;  // distances to the edges
    const int left = (AlongDepth ? rows : depths) > 0 ? (AlongDepth ? depths : rows) : 0;
    T const* from = from_[group] + row * int64_t(row_stride_[group]) +
                    depth * int64_t(depth_stride_[group]);
    const int64_t step =
        AlongDepth ? int64_t(depth_stride_[group]) : int64_t(row_stride_[group]);
    Pack<Element, kChunk> chunk;
    CUTE_UNROLL
    for (int v = 0; v < kChunk; v += Vector) {
      if constexpr (kAsync) {
        using Word = cute::uint_bit_t<8 * kBytes>;
        using Copy = cute::conditional_t<kBytes == 16, cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<Word>,
                                         cute::SM80_CP_ASYNC_CACHEALWAYS_ZFILL<Word>>;
        Copy::copy(*reinterpret_cast<Word const*>(from + v),
                   *reinterpret_cast<Word*>(to + v), v < left);
      } else {
        Pack<T, Vector> pack{};
        if (v < left) pack = *reinterpret_cast<Pack<T, Vector> const*>(from + v * step);
        CUTE_UNROLL
        for (int j = 0; j < Vector; ++j)
          chunk.element[v + j] = Element(to_float(pack.element[j]));
      }
    }
    if constexpr (!kAsync) *reinterpret_cast<Pack<Element, kChunk>*>(to) = chunk;
  }

  int thread_;  // this thread's index in the producer
  T const* from_[Groups];
  RowStride row_stride_[Groups];
  DepthStride depth_stride_[Groups];
  int rows_[Groups], depth_;  // distances from the tile to the operand's edges
};

template <class Element, class TA, class TB, int TileM, int TileN, int Stages, int VectorA,
          int VectorB, bool DepthA, bool DepthB, bool Tma, int Cluster, int Groups = 1,
          bool PingPong = false, int Kept = 0>
struct WgmmaGemm {
  // kConsumers warpgroups multiply, and kSharing of them share one tile.
  static constexpr int kConsumers = TileM == 192 ? 3 : TileM >= 128 || PingPong ? 2 : 1;
  static constexpr int kSharing = PingPong ? 1 : kConsumers;
  static constexpr int kBlocks = TileM / (64 * kSharing);  // 64-row blocks that a consumer has
  static constexpr int kGroupN = TileN / Groups;             // a tile's columns per product
  static constexpr int kPart = TileN / 2, kResults = kBlocks * kPart;  // results per thread
  // kResident CTAs fit on an SM. If only one CTA fits, the producer is a whole warpgroup and gives
  // most of its registers to the consumers. Consumers come first, because a warpgroup must start at
  // a multiple of four warps.
  static constexpr int kResident =
      kResults <= 64 && kConsumers < 3 && !PingPong && (Tma || kConsumers == 1) ? 2 : 1;
  static constexpr int kProducers = kResident == 2 && Tma ? 32 : 128;  // threads of the producer
  static constexpr int kFirstProducer = 128 * kConsumers;
  static constexpr int kThreads = kFirstProducer + kProducers;
  static constexpr int kVector = 8;  // each() accepts V up to kVector
  static constexpr bool kTma = Tma;
  static constexpr int kCluster = Tma ? Cluster : 1;
  using TileA = LineTile<Element, TileM, DepthA>;
  using TileB = LineTile<Element, TileN, DepthB>;
  static constexpr int kTileK = TileA::kDepth;
  static_assert(TileM % (64 * kSharing) == 0 && TileN <= 256);
  // Without TMA, the producer signals that a stage is full only after it has started the next copy.
  static_assert(Stages >= (Tma ? 2 : 3));
  static_assert(kResults <= (kConsumers == 3 ? 96 : 128) && (!PingPong || TileM <= 128) && kGroupN % (DepthB ? 32 : 64) == 0);
  static_assert(sizeof(Element) == 2 || (DepthA && DepthB), "wgmma transposes 16-bit types only");

  using Op = decltype(cute::SM90::GMMA::ss_op_selector<
                      Element, Element, float,
                      cute::Shape<cute::_64, cute::Int<TileN>, cute::Int<kTileK / 4>>,
                      TileA::kMajor, TileB::kMajor>());
  struct alignas(1024) Storage {
    Element a[Stages][TileA::kElements], b[Kept > 0 ? Kept : Stages][TileB::kElements];
    uint64_t full[Stages], empty[Stages];
    uint64_t order[2];  // barrier i lets consumer i multiply its next tile
  };

  float results[kBlocks][kPart];

  // All threads must call begin() first.
  CUTE_DEVICE void begin(Storage& storage) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Stages; ++s) {
        cute::initialize_barrier(storage.full[s], Tma ? 1 : kProducers);
        cute::initialize_barrier(storage.empty[s], 4 * kSharing * kCluster);
      }
      for (int i = 0; i < 2; ++i) cute::initialize_barrier(storage.order[i], 4);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if constexpr (kCluster > 1) cute::cluster_sync();
    else __syncthreads();
  }

  static CUTE_DEVICE bool produces() { return threadIdx.x >= kFirstProducer; }
  // The producer must call start_loading() before its loop, the consumers start_multiplying(). At
  // launch, each thread has 168 registers (128 with three consumers).
  static CUTE_DEVICE void start_loading() {
    if constexpr (kGives) cutlass::arch::warpgroup_reg_dealloc<kKept>();
  }
  static CUTE_DEVICE void start_multiplying() {
    if constexpr (kGives) cutlass::arch::warpgroup_reg_alloc<kTaken>();
  }

  // Loads the tiles [first, last) along k for one tile of results. batch_a and batch_b are
  // coordinates on the third axis of the tensor maps.
  CUTE_DEVICE void load(cute::TmaDescriptor const& a, cute::TmaDescriptor const& b, int batch_a,
                        int batch_b, TileIndex tile, int first, int last, Storage& storage) {
    load(a, ColumnMaps<1>{{&b}, {batch_b}, {0}}, batch_a, tile, first, last, storage);
  }
  CUTE_DEVICE void load(cute::TmaDescriptor const& a, ColumnMaps<Groups> const& b, int batch_a,
                        TileIndex tile, int first, int last, Storage& storage) {
    static_assert(Tma);
    load_by_map(a, b, batch_a, tile, first, last, storage);
  }
  // Calls copy(a, b, full, step) for each of the tiles [first, last) along k. copy() starts bulk
  // copies of both tiles, which must signal the barrier `full`. If b is null, copy() copies only
  // the tile of A.
  template <class Copy>
  CUTE_DEVICE void load_by(int first, int last, Storage& storage, Copy&& copy) {
    static_assert(Tma);
    if (threadIdx.x != kFirstProducer) return;
    for (int step = first; step < last; ++step, advance()) {
      cute::wait_barrier(storage.empty[stage_], phase_ ^ 1);
      cute::set_barrier_transaction_bytes(storage.full[stage_], kept_ ? kBytesOfA : kTileBytes);
      copy(storage.a[stage_], kept_ ? nullptr : storage.b[place_of_b(step)], storage.full[stage_],
           step);
    }
    kept_ = Kept > 0;
  }
  template <class A, class B>
  CUTE_DEVICE void load(A const& a, B const& b, TileIndex tile, int first, int last,
                        Storage& storage) {
    const B columns[1] = {b};
    load(a, columns, tile, first, last, storage);
  }
  template <class A, class B>
  CUTE_DEVICE void load(A const& a, B const (&b)[Groups], TileIndex tile, int first, int last,
                        Storage& storage) {
    static_assert(!Tma);
    load_by_address(a, b, tile, first, last, storage);
  }

  // With PingPong, returns true if the other consumer computes this tile, whose tiles along k are
  // [first, last). Both consumers must call skips() for every tile, in the same order.
  CUTE_DEVICE bool skips(int first, int last) {
    static_assert(PingPong);
    const bool own = turn_ % 2 == int(threadIdx.x / 128);
    ++turn_;
    if (own) return false;
    const int at = stage_ + cute::max(last - first, 0);
    phase_ ^= at / Stages % 2;
    stage_ = at % Stages;
    return true;
  }

  // Multiplies the tiles [first, last) along k that the producer loads.
  CUTE_DEVICE void multiply(int first, int last, Storage& storage) {
    consume(first, last, storage);
  }

  // All threads must call end() last. In a cluster, end() keeps the CTA alive while the other CTA
  // may still signal its barriers.
  CUTE_DEVICE void end() {
    if constexpr (kCluster > 1) cute::cluster_sync();
  }

  // Calls f(results, m, n) for every V neighbouring results along n; V is 1, 2, 4 or 8. All threads of
  // a warp must call each().
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    each<V>(tile, [](int, int) { return 0; },
            [&](auto const& c, int, int m, int n) { f(c, m, n); });
  }

  // Calls f(results, prepared, m, n), where `prepared` is the value that prepare(m, n) returned.
  // each() calls prepare() for several positions before f(), so that the loads in prepare()
  // overlap.
  template <int V, class Prepare, class F>
  CUTE_DEVICE void each(TileIndex tile, Prepare&& prepare, F&& f) const {
    static_assert(V == 1 || V == 2 || V == 4 || V == 8);
    constexpr int kRuns = kGroupPart / V, kBatch = kRuns % 4 == 0 ? 4 : kRuns % 3 == 0 ? 3 : 2;
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      CUTE_UNROLL
      for (int first = 0; first < kRuns; first += kBatch) {
        decltype(prepare(0, 0)) prepared[kBatch];
        CUTE_UNROLL
        for (int j = 0; j < kBatch; ++j) {
          const TileIndex at = place<V>(tile, block, (first + j) * V);
          prepared[j] = prepare(at.m, at.n);
        }
        CUTE_UNROLL
        for (int j = 0; j < kBatch; ++j) {
          const int i = (first + j) * V;
          float c[Groups][V];
          CUTE_UNROLL
          for (int g = 0; g < Groups; ++g) {
            if constexpr (V == 8) {
              gather_columns(results[block], g * kGroupPart + first_of_eight(i), c[g]);
            } else if constexpr (V == 4) {
              gather_four(results[block], g * kGroupPart + i / 8 * 8 + i / 4 % 2 * 2, c[g]);
            } else {
              CUTE_UNROLL
              for (int v = 0; v < V; ++v) c[g][v] = results[block][g * kGroupPart + i + v];
            }
          }
          const TileIndex at = place<V>(tile, block, i);
          if constexpr (Groups == 1) f(c[0], prepared[j], at.m, at.n);
          else f(c, prepared[j], at.m, at.n);
        }
      }
    }
  }

  // each_packed() is for results of a 16-bit type T. It calls compute(pair, m, n), which replaces
  // the sums at (m, n) and (m, n + 1) by results, and then store(pack, m, n) with 8 neighbouring
  // results along n. Lanes exchange rounded results, which takes half as many instructions as the
  // exchange of each<8>().
  template <class T, class Compute, class Store>
  CUTE_DEVICE void each_packed(TileIndex tile, Compute&& compute, Store&& store) const {
    static_assert(Groups == 1 && sizeof(T) == 2);
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      CUTE_UNROLL
      for (int i = 0; i < kPart; i += 8) {
        const int first = first_of_eight(i);
        uint32_t words[4];
        CUTE_UNROLL
        for (int group = 0; group < 4; ++group) {
          const TileIndex at = place<2>(tile, block, first + 4 * group);
          float pair[2] = {results[block][first + 4 * group], results[block][first + 4 * group + 1]};
          compute(pair, at.m, at.n);
          T rounded[2];
          pack_pair(pair[0], pair[1], rounded);
          memcpy(&words[group], rounded, sizeof(rounded));
        }
        gather_words(words);
        Pack<T, 8> pack;
        memcpy(&pack, words, sizeof(pack));
        const TileIndex at = place<8>(tile, block, i);
        store(pack, at.m, at.n);
      }
    }
  }

 protected:
  static constexpr int kBytesOfA = int(sizeof(Element)) * TileA::kElements;
  static constexpr int kTileBytes = kBytesOfA + int(sizeof(Element)) * TileB::kElements;
  static constexpr int kGroupPart = kPart / Groups;  // results per thread, product and block

  // Returns which part of a tile's rows this consumer computes.
  static CUTE_DEVICE int part() { return PingPong ? 0 : threadIdx.x / 128; }

  // For each<8>(), returns the argument `first` of gather_columns(). One call of gather_columns()
  // covers 32 columns of one of the thread's two rows.
  static CUTE_DEVICE int first_of_eight(int i) { return i / 16 * 16 + i / 8 % 2 * 2; }

  // Returns row and column of the first of the V results that each<V>() passes for result i of a
  // block.
  template <int V>
  static CUTE_DEVICE TileIndex place(TileIndex tile, int block, int i) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int m =
        tile.m * TileM + part() * 64 * kBlocks + warp % 4 * 16 + lane / 4 + block * 64;
    const int n = tile.n * kGroupN;
    if constexpr (V == 8)
      return {m + i / 8 % 2 * 8, n + first_of_eight(i) / 16 * 32 + lane % 4 * 8};
    else if constexpr (V == 4)
      return {m + i / 4 % 2 * 8, n + i / 8 * 16 + lane % 2 * 8 + lane % 4 / 2 * 4};
    else
      return {m + i / 2 % 2 * 8, n + i / 4 * 8 + lane % 4 * 2 + i % 2};
  }

  // If kGives is true, start_loading() leaves kKept registers to each thread of the producer, and
  // start_multiplying() gives kTaken registers to each thread of a consumer.
  static constexpr bool kGives = kConsumers >= 2 && kResident == 1;
  static constexpr int kKept = Tma ? (kConsumers == 3 ? 32 : 40) : kConsumers == 3 ? 80 : 104;
  static constexpr int kTaken = kConsumers == 3 ? (Tma ? 160 : 144) : Tma ? 232 : 200;

  CUTE_DEVICE void load_by_map(cute::TmaDescriptor const& a, ColumnMaps<Groups> const& b,
                               int batch_a, TileIndex tile, int first, int last,
                               Storage& storage) {
    const int rank = kCluster > 1 ? int(cute::block_rank_in_cluster()) : 0;
    load_by(first, last, storage, [&](Element* to_a, Element* to_b, uint64_t& full, int step) {
      load<TileA, TileM, 1, DepthA>(a, to_a, full, 0, step, tile.m * TileM, batch_a);
      CUTE_UNROLL
      for (int g = 0; g < Groups; ++g)
        load<TileB, kGroupN, kCluster, DepthB>(*b.map[g], to_b + g * kGroupN * TileB::kLine, full,
                                               rank, step, b.first[g] + tile.n * kGroupN,
                                               b.batch[g]);
    });
  }

  // Divides Rows rows, which begin at row `top`, into Parts parts and loads part number `part`. If
  // Parts is above 1, TMA sends the part to all CTAs of the cluster.
  template <class Tile, int Rows, int Parts, bool AlongDepth>
  static CUTE_DEVICE void load(cute::TmaDescriptor const& map, Element* to, uint64_t& full,
                               int part, int step, int top, int batch) {
    constexpr int kRows = Rows / Parts, kWidth = AlongDepth ? kRows : Tile::kLine;
    static_assert(kRows % kWidth == 0, "a part consists of whole blocks");
    const int depth = step * Tile::kDepth;
    CUTE_UNROLL
    for (int i = 0; i < kRows; i += kWidth) {
      const int within = part * kRows + i, row = top + within;
      const int along = AlongDepth ? depth : row, across = AlongDepth ? row : depth;
      Element* target = to + within * Tile::kLine;
      const auto hint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
      if constexpr (Parts > 1)
        cute::SM90_TMA_LOAD_MULTICAST_3D::copy(&map, &full, (1 << Parts) - 1, hint, target, along,
                                               across, batch);
      else
        cute::SM90_TMA_LOAD_3D::copy(&map, &full, hint, target, along, across, batch);
    }
  }

  template <class A, class B>
  CUTE_DEVICE void load_by_address(A const& a, B const (&b)[Groups], TileIndex tile, int first,
                                   int last, Storage& storage) {
    const A rows[1] = {a};
    ChunkLoader<TA, Element, TileM, VectorA, DepthA, decltype(cute::stride<0>(a)),
                decltype(cute::stride<1>(a))>
        load_a(rows, tile.m, first, threadIdx.x - kFirstProducer);
    ChunkLoader<TB, Element, TileN, VectorB, DepthB, decltype(cute::stride<0>(b[0])),
                decltype(cute::stride<1>(b[0])), Groups>
        load_b(b, tile.n, first, threadIdx.x - kFirstProducer);
    for (int step = first; step < last; ++step, advance()) {
      cute::wait_barrier(storage.empty[stage_], phase_ ^ 1);
      load_a.send(storage.a[stage_]);
      load_b.send(storage.b[stage_]);
      cute::cp_async_fence();
      if (step > first) {
        cute::cp_async_wait<1>();
        publish(storage.full[before()]);
      }
    }
    cute::cp_async_wait<0>();
    if (first < last) publish(storage.full[before()]);
  }

  // Signals to the consumers that this thread's part of a stage has arrived.
  static CUTE_DEVICE void publish(uint64_t& full) {
    cute::tma_store_fence();  // wgmma reads through the async proxy, which needs this fence
    cute::arrive_barrier(full);
  }

  CUTE_DEVICE void consume(int first, int last, Storage& storage) {
    auto sums = cute::make_tensor<float>(
        cute::Shape<cute::Int<kPart>, cute::Int<kBlocks>>{});
    cute::clear(sums);
    cute::MMA_Atom<Op> atom;
    if constexpr (PingPong) wait_for_turn(storage.order, turn_ - 1);
    for (int step = first; step < last; ++step, advance()) {
      cute::wait_barrier(storage.full[stage_], phase_);
      multiply(atom, storage.a[stage_], storage.b[place_of_b(step)], sums);
      if (step > first) {  // after this wait, the instructions of the previous step have ended
        cute::warpgroup_wait<1>();
        release(storage.empty[before()]);
      }
    }
    if constexpr (PingPong) end_turn(storage.order);
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(sums);
    if (first < last) release(storage.empty[before()]);
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      CUTE_UNROLL
      for (int i = 0; i < kPart; ++i) results[block][i] = sums(i, block);
    }
  }

  CUTE_DEVICE int place_of_b(int step) const { return Kept > 0 ? step : stage_; }
  CUTE_DEVICE int before() const { return stage_ == 0 ? Stages - 1 : stage_ - 1; }
  CUTE_DEVICE void advance() {
    if (++stage_ == Stages) stage_ = 0, phase_ ^= 1;
  }

  template <class Sums>
  static CUTE_DEVICE void multiply(cute::MMA_Atom<Op>& atom, Element const* a, Element const* b,
                                   Sums& sums) {
    const auto from_a = TileA::template descriptor<64>(a + part() * kBlocks * 64 * TileA::kLine);
    const auto from_b = TileB::template descriptor<TileN>(b);
    constexpr int kBlock = 64 * 128 / 16;  // distance of blocks of A, in units of 16 bytes
    atom.accumulate_ = cute::SM90::GMMA::ScaleOut::One;
    cute::warpgroup_fence_operand(sums);
    cute::warpgroup_arrive();
    CUTE_UNROLL
    for (int k = 0; k < 4; ++k) {
      CUTE_UNROLL
      for (int block = 0; block < kBlocks; ++block)
        cute::gemm(atom,
                   cute::make_tensor(from_a + (k * TileA::kStep + block * kBlock),
                                     cute::Layout<cute::_1>{}),
                   cute::make_tensor(from_b + k * TileB::kStep, cute::Layout<cute::_1>{}),
                   sums(cute::_, block));
    }
    cute::warpgroup_commit_batch();
  }

  // Signals to the producers of all CTAs in the cluster that this warp has read a pipeline stage.
  static CUTE_DEVICE void release(uint64_t& empty) {
    __syncwarp();
    const int lane = threadIdx.x % 32;
    if (lane >= kCluster) return;
    if constexpr (kCluster > 1) {
      const uint32_t own = cute::cast_smem_ptr_to_uint(&empty);
      asm volatile(
          "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
          "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(own),
          "r"(lane)
          : "memory");
    } else {
      cute::arrive_barrier(empty);
    }
  }

  int stage_ = 0, phase_ = 0;  // this thread's position in the ring of stages
  int turn_ = 0;               // number of calls of skips()
  bool kept_ = false;          // whether shared memory has all tiles of B
};

}  // namespace cutegen
