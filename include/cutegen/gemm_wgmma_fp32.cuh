// SPDX-License-Identifier: Apache-2.0
// Matrix product with float32 accuracy on Hopper's tensor cores: C(m, n) = sum over k of
// A(m, k) * B(n, k).
//
// Contract: this header needs sm_90a. The kernel splits each float into two tf32 values, x = high +
// low, and adds the products low * high, high * low and high * high by wgmma. The kernel omits only
// low * low, which is at most about 2^-22 of the result. Because tensor cores truncate their sums,
// the sums of each tile along k start at zero, and the CUDA cores add them to the results in
// float32.
//
// With Products 1 instead of 3, the kernel rounds both operands to the nearest tf32 value and
// multiplies them once. Without the rounding, the tensor cores would truncate floats, which biases
// the results.
//
// The launch has as many CTAs as the GPU holds, and each CTA computes tiles of results one after
// the other. Two warpgroups (the producers) load tiles of the operands, and the others (the
// consumers) multiply. Producers and consumers have separate loops over the tiles. While the
// consumers write the results of a tile, the producers already load the next tile. repair()
// recomputes sums that are NaN or tiny, because infinities, the largest floats and subnormal
// numbers are not the sum of two tf32 values. Sizes and strides are arbitrary. Elements beyond the
// operands' edges read as zero. TileM and TileN are 64 or 128 (TileN is 96 with three groups),
// TileK is 32, and a CTA has kThreads threads.
//
// If Groups is above 1, the kernel multiplies A by several matrices B. A tile then has TileN /
// Groups columns of each product; load() and repair() take an array of tensors B; and each() passes
// c[group][v], the results of all products at one position. Three groups need TileN 96 and matrices
// B that are contiguous along k.
//
// Example: Gemm gemm; gemm.begin(storage);
//          if (gemm.produces()) {
//            gemm.start_loading();
//            for (tile...) gemm.load(A, B, tile, 0, tiles, storage);
//            gemm.end_loading(storage);
//          } else {
//            gemm.start_multiplying();
//            for (tile...) {
//              gemm.multiply(0, tiles, storage);
//              gemm.repair(A, B, tile, 0, tiles);
//              gemm.each<Gemm::kVector>(tile, [&](auto const& c, int m, int n) { ... });
//            }
//          }
#pragma once

#include <cutlass/arch/reg_reconfig.h>
#include <cutegen/gemm_tile.cuh>
#include <cutegen/tf32.cuh>

namespace cutegen {

// A PitchedTile is a tile in shared memory with the same order as in global memory. The pitch of a
// PitchedTile spreads a warp's reads of 8 rows x 4 elements along k over all banks.
template <int Rows, int Depth, bool AlongDepth>
struct PitchedTile {
  static constexpr int kRows = Rows, kDepth = Depth;
  static constexpr int kPitch = AlongDepth ? Depth + 4 : Rows + 8;
  static constexpr int kElements = kPitch * (AlongDepth ? Rows : Depth);
  static constexpr bool kWhole = true;
  static_assert(kPitch % 32 == (AlongDepth ? 4 : 8));
  static CUTE_DEVICE int at(int row, int more_rows, int depth, int more_depth, int stage) {
    const int r = row + more_rows, d = depth + more_depth;
    return (AlongDepth ? r * kPitch + d : d * kPitch + r) + stage * kElements;
  }
};

// A WgmmaTile has the layout in shared memory that wgmma reads: rows of 128 bytes along k, whose
// eight 16-byte chunks are swizzled.
template <int Rows>
struct WgmmaTile {
  static constexpr int kElements = Rows * 32;
  using Element = cute::tfloat32_t;
  using Layout = decltype(cute::tile_to_shape(cute::GMMA::Layout_K_SW128_Atom<Element>{},
                                              cute::Shape<cute::Int<Rows>, cute::_32>{}));
  // Returns the offset of a chunk, which holds four neighbours along k.
  static CUTE_DEVICE int at(int row, int chunk) { return row * 32 + (chunk ^ row % 8) * 4; }
  // Returns the descriptor of the first instruction's operand.
  static CUTE_DEVICE cute::SM90::GMMA::DescriptorIterator descriptor(float const* tile) {
    auto whole = cute::make_tensor(
        cute::make_smem_ptr(reinterpret_cast<Element const*>(tile)), Layout{});
    return {cute::SM90::GMMA::make_gmma_desc<cute::SM90::GMMA::Major::K>(
        cute::local_tile(whole, cute::Shape<cute::Int<Rows>, cute::_8>{}, cute::make_coord(0, 0)))};
  }
};

// Loads tiles of an operand into registers, and stores high and low parts of their elements in
// shared memory. With one product, it stores rounded tf32 values instead. SplitLoader stores chunks
// of four neighbours along k. Neighbouring threads read neighbouring addresses. A tile has Rows /
// Groups rows of each of the `Groups` tensors.
template <class T, int Rows, int Threads, int Vector, bool AlongDepth, class RowStride,
          class DepthStride, int Groups = 1>
class SplitLoader {
  static constexpr int kChunks = Rows * 8 / Threads;
  static constexpr int kGroupRows = Rows / Groups;
  // If the operand is contiguous along its rows, all chunks of a thread lie in one row, so the
  // thread reads only one tensor.
  static constexpr int kTensors = AlongDepth ? Groups : 1;
  // A thread's chunks lie kRowStep rows and kChunkStep chunks along k apart.
  static constexpr int kRowStep = AlongDepth ? Threads / 8 : 0;
  static constexpr int kChunkStep = AlongDepth ? 0 : Threads / Rows;

  static_assert(Rows * 8 % Threads == 0 && (AlongDepth || Threads % Rows == 0));
  static_assert(Rows % Groups == 0 && (!AlongDepth || kGroupRows % kRowStep == 0));

 public:
  template <class Global>
  CUTE_DEVICE SplitLoader(Global const (&globals)[Groups], int tile, int first)
      : rows_(cute::size<0>(globals[0]) - tile * kGroupRows),
        depth_(cute::size<1>(globals[0]) - first * 32) {
    CUTE_UNROLL
    for (int g = 0; g < Groups; ++g) {
      if (!AlongDepth && row() / kGroupRows != g) continue;
      const int to = AlongDepth ? g : 0;
      from_[to] = &globals[g](tile * kGroupRows + row() % kGroupRows, first * 32 + 4 * chunk());
      row_stride_[to] = cute::stride<0>(globals[g]);
      depth_stride_[to] = cute::stride<1>(globals[g]);
    }
  }

  // Loads the next tile into registers.
  CUTE_DEVICE void fetch() {
    if (rows_ >= kGroupRows && depth_ >= 32) read<true>();
    else read<false>();
    CUTE_UNROLL
    for (int g = 0; g < kTensors; ++g) from_[g] += 32 * depth_stride_[g];
    depth_ -= 32;
  }

  template <int Products>
  CUTE_DEVICE void put(float* high, float* low) const {
    CUTE_UNROLL
    for (int i = 0; i < kChunks; ++i) {
      Pack<float, 4> h, l;
      CUTE_UNROLL
      for (int v = 0; v < 4; ++v) {
        h.element[v] = Products == 3 ? tf32_high(next_[i][v]) : tf32_nearest(next_[i][v]);
        if constexpr (Products == 3) l.element[v] = next_[i][v] - h.element[v];
      }
      const int to = WgmmaTile<Rows>::at(row() + i * kRowStep, chunk() + i * kChunkStep);
      *reinterpret_cast<Pack<float, 4>*>(high + to) = h;
      if constexpr (Products == 3) *reinterpret_cast<Pack<float, 4>*>(low + to) = l;
    }
  }

 private:
  // `Inside` is true if the whole tile lies inside the operand.
  template <bool Inside>
  CUTE_DEVICE void read() {
    CUTE_UNROLL
    for (int i = 0; i < kChunks; ++i) {
      const int group = i * kRowStep / kGroupRows, down = i * kRowStep % kGroupRows;
      T const* from = from_[group] + down * row_stride_[group] +
                      i * 4 * kChunkStep * depth_stride_[group];
      const int depth = depth_ - 4 * (chunk() + i * kChunkStep);
      const bool inside = Inside || row() % kGroupRows + down < rows_;
      if constexpr (AlongDepth && Vector >= 4) {
        Pack<T, 4> four{};
        if (Inside || (inside && depth > 0)) four = *reinterpret_cast<Pack<T, 4> const*>(from);
        CUTE_UNROLL
        for (int v = 0; v < 4; ++v) next_[i][v] = to_float(four.element[v]);
      } else {
        CUTE_UNROLL
        for (int v = 0; v < 4; ++v)
          next_[i][v] =
              Inside || (inside && v < depth) ? to_float(from[v * depth_stride_[group]]) : 0.0f;
      }
    }
  }

  // row() and chunk() return the row and chunk index of this thread's first chunk.
  static CUTE_DEVICE int row() { return AlongDepth ? threadIdx.x / 8 : threadIdx.x % Rows; }
  static CUTE_DEVICE int chunk() { return AlongDepth ? threadIdx.x % 8 : threadIdx.x / Rows; }

  T const* from_[kTensors];
  RowStride row_stride_[kTensors];
  DepthStride depth_stride_[kTensors];
  // rows_ and depth_ count the rows and the elements along k from the tile to the operand's edges.
  int rows_, depth_;
  float next_[kChunks][4];
};

template <class TA, class TB, int TileM, int TileN, int TileK, int Stages, int VectorA, int VectorB,
          bool DepthA, bool DepthB, int Products = 3, int Groups = 1>
struct WgmmaFp32Gemm {
  static_assert(Products == 3 || Products == 1);
  // The tensor cores read one operand from registers, which allows any memory layout, and the other
  // operand from shared memory. Producers split the operand that lies in shared memory. Splitting
  // is fastest if this operand is contiguous along k. If only A is contiguous along k, kTurned puts
  // A into shared memory instead of B. With several groups, B is always in shared memory.
  static constexpr bool kTurned = DepthA && !DepthB && Groups == 1;
  static constexpr int kRows = kTurned ? TileN : TileM, kColumns = kTurned ? TileM : TileN;
  static constexpr int kConsumers = kRows / 64;  // kConsumers warpgroups multiply
  static constexpr int kProducers = 256;         // kProducers threads load tiles
  static constexpr int kThreads = kProducers + 128 * kConsumers;
  static constexpr int kResident = 1;  // CTAs that fit on an SM
  static constexpr int kVector = kTurned ? 1 : 2;  // each() accepts V up to kVector
  static constexpr int kResults = kColumns / 2;    // each thread has kResults results
  static constexpr int kGroupN = TileN / Groups, kGroupResults = kResults / Groups;
  static_assert((kRows == 64 || kRows == 128) &&
                (kColumns == 64 || kColumns == 128 || (kColumns == 96 && Groups == 3)) &&
                TileK == 32 && Stages > 2);
  static_assert(TileN % Groups == 0 && kGroupN % 32 == 0);
  using T = cute::conditional_t<kTurned, TB, TA>;
  using TShared = cute::conditional_t<kTurned, TA, TB>;
  static constexpr bool kDepth = kTurned ? DepthB : DepthA, kDepthShared = kTurned ? DepthA : DepthB;
  static constexpr int kWidth = kTurned ? VectorB : VectorA;
  static constexpr int kWidthShared = kTurned ? VectorA : VectorB;
  static constexpr bool kAsync = cute::is_same_v<T, float>;

  using Op = decltype(cute::SM90::GMMA::rs_op_selector<
                      cute::tfloat32_t, cute::tfloat32_t, float,
                      cute::Shape<cute::_64, cute::Int<kColumns>, cute::_8>>());
  using Plain = PitchedTile<kRows, TileK, kDepth>;
  using Split = WgmmaTile<kColumns>;
  struct alignas(1024) Storage {
    float parts[Products == 3 ? 2 : 1][Stages][Split::kElements];  // parts[0]: high parts
    float plain[Stages * Plain::kElements];
    uint64_t full[Stages], empty[Stages];
  };

  float results[kResults];

  // All threads must call begin() first.
  CUTE_DEVICE void begin(Storage& storage) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Stages; ++s) {
        cute::initialize_barrier(storage.full[s], kProducers);
        cute::initialize_barrier(storage.empty[s], 4 * kConsumers);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }

  static CUTE_DEVICE bool produces() { return threadIdx.x < kProducers; }
  // The producers must call start_loading() before their loop, the consumers start_multiplying().
  static CUTE_DEVICE void start_loading() {
    cutlass::arch::warpgroup_reg_dealloc<kConsumers == 2 ? 48 : 120>();
  }
  static CUTE_DEVICE void start_multiplying() {
    cutlass::arch::warpgroup_reg_alloc<kConsumers == 2 ? 208 : 240>();
  }

  // Loads the tiles [first, last) along k of both operands for one tile of results. The last tile
  // may still be in flight when load() returns.
  template <class A, class B>
  CUTE_DEVICE void load(A const& a, B const& b, TileIndex tile, int first, int last,
                        Storage& storage) {
    const B columns[1] = {b};
    load(a, columns, tile, first, last, storage);
  }
  template <class A, class B>
  CUTE_DEVICE void load(A const& a, B const (&b)[Groups], TileIndex tile, int first, int last,
                        Storage& storage) {
    if (first >= last) return;
    const A rows[1] = {a};
    if constexpr (kTurned) produce(b[0], tile.n, rows, tile.m, first, last, storage);
    else produce(a, tile.m, b, tile.n, first, last, storage);
  }

  // Producers must call end_loading() after their last tile.
  CUTE_DEVICE void end_loading(Storage& storage) {
    cute::cp_async_wait<0>();
    if (in_flight_ >= 0) publish(storage.full[in_flight_]);
  }

  // Multiplies the tiles [first, last) along k, and leaves the sums in `results`.
  CUTE_DEVICE void multiply(int first, int last, Storage& storage) {
    CUTE_UNROLL
    for (int i = 0; i < kResults; ++i) results[i] = 0;
    if (first >= last) return;
    auto sums = cute::make_tensor<float>(cute::Shape<cute::Int<kResults>>{});
    float next[4][4];
    cute::wait_barrier(storage.full[stage_], phase_);
    read(storage.plain, stage_, next);
    for (int step = first; step < last; ++step) {
      auto high = cute::make_tensor<cute::tfloat32_t>(cute::Shape<cute::_4, cute::_4>{});
      auto low = cute::make_tensor<cute::tfloat32_t>(cute::Shape<cute::_4, cute::_4>{});
      CUTE_UNROLL
      for (int k = 0; k < 4; ++k) {
        CUTE_UNROLL
        for (int j = 0; j < 4; ++j) {
          const float h = Products == 3 ? tf32_high(next[k][j]) : tf32_nearest(next[k][j]);
          high(j, k) = cute::tfloat32_t::bitcast(__float_as_uint(h));
          if constexpr (Products == 3)
            low(j, k) = cute::tfloat32_t::bitcast(__float_as_uint(next[k][j] - h));
        }
      }
      start(high, low, storage, stage_, sums);
      const int done = stage_;
      next_stage();
      if (step + 1 < last) {  // reads the next operands while the tensor cores multiply
        cute::wait_barrier(storage.full[stage_], phase_);
        read(storage.plain, stage_, next);
      }
      cute::warpgroup_wait<0>();
      cute::warpgroup_fence_operand(sums);
      __syncwarp();
      if (lane() == 0) cute::arrive_barrier(storage.empty[done]);
      CUTE_UNROLL
      for (int i = 0; i < kResults; ++i) results[i] += sums(i);
    }
  }

  // Recomputes sums that are NaN in float32 on the CUDA cores. With three products, repair() also
  // recomputes tiny sums.
  template <class A, class B>
  CUTE_DEVICE void repair(A const& a, B const& b, TileIndex tile, int first, int last) {
    const B columns[1] = {b};
    repair(a, columns, tile, first, last);
  }
  template <class A, class B>
  CUTE_DEVICE void repair(A const& a, B const (&b)[Groups], TileIndex tile, int first, int last) {
    bool any = false;
    CUTE_UNROLL
    for (int i = 0; i < kResults; ++i) any |= lost(results[i]);
    if (!any) return;
    const int end = cute::min(last * TileK, int(cute::size<1>(a)));
    for (int i = 0; i < kResults; ++i) {  // we do not unroll this loop, because it rarely runs
      float sum = 0;
      CUTE_UNROLL
      for (int j = 0; j < kResults; ++j) sum = i == j ? results[j] : sum;
      const auto [m, n] = place(tile, i % kGroupResults);
      if (!lost(sum) || m >= cute::size<0>(a) || n >= cute::size<0>(b[0])) continue;
      const B own = b[Groups == 1 ? 0 : i / kGroupResults];
      sum = 0;
      for (int k = first * TileK; k < end; ++k)
        sum = fmaf(to_float(TA(a(m, k))), to_float(TB(own(n, k))), sum);
      CUTE_UNROLL
      for (int j = 0; j < kResults; ++j) results[j] = i == j ? sum : results[j];
    }
  }

  // Calls f(results, m, n) for every V neighbouring results along n; V must divide kVector.
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    static_assert(kVector % V == 0);
    CUTE_UNROLL
    for (int i = 0; i < kGroupResults; i += V) {
      float c[Groups][V];
      CUTE_UNROLL
      for (int g = 0; g < Groups; ++g) {
        CUTE_UNROLL
        for (int v = 0; v < V; ++v) c[g][v] = results[g * kGroupResults + i + v];
      }
      const auto [m, n] = place(tile, i);
      if constexpr (Groups == 1) f(c[0], m, n);
      else f(c, m, n);
    }
  }

 private:
  static CUTE_DEVICE int lane() { return threadIdx.x % 32; }
  static CUTE_DEVICE bool lost(float sum) { return Products == 3 ? parts_lost(sum) : sum != sum; }
  // Returns the first row of the tile for which this thread has results.
  static CUTE_DEVICE int first_row() {
    return (threadIdx.x - kProducers) / 32 * 16 + lane() / 4;
  }
  // Returns row and column of this thread's result i; they are the same for all groups.
  static CUTE_DEVICE TileIndex place(TileIndex tile, int i) {
    const int row = first_row() + i / 2 % 2 * 8, column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
    return {tile.m * TileM + (kTurned ? column : row), tile.n * kGroupN + (kTurned ? row : column)};
  }

  template <class G, class GShared, int Tensors>
  CUTE_DEVICE void produce(G const& global, int tile, GShared const (&shared)[Tensors],
                           int tile_shared, int first, int last, Storage& storage) {
    auto plain = loader<T, float, Plain, kProducers, kWidth, kDepth>(global, tile, storage.plain);
    SplitLoader<TShared, kColumns, kProducers, kWidthShared, kDepthShared,
                decltype(cute::stride<0>(shared[0])), decltype(cute::stride<1>(shared[0])),
                Tensors>
        split(shared, tile_shared, first);
    split.fetch();
    for (int step = first; step < last; ++step) {
      if constexpr (!kAsync) plain.fetch(step);
      cute::wait_barrier(storage.empty[stage_], phase_ ^ 1);
      if constexpr (kAsync) plain.send(step, stage_);
      else plain.put(stage_);
      cute::cp_async_fence();
      split.template put<Products>(storage.parts[0][stage_], low_part(storage, stage_));
      if (step + 1 < last) split.fetch();
      if (in_flight_ >= 0) {
        cute::cp_async_wait<1>();
        publish(storage.full[in_flight_]);
      }
      in_flight_ = stage_;
      next_stage();
    }
  }

  static CUTE_DEVICE float* low_part(Storage& storage, int stage) {
    if constexpr (Products == 3) return storage.parts[1][stage];
    else return nullptr;
  }

  // Signals to the consumers that this thread's part of a stage has arrived.
  static CUTE_DEVICE void publish(uint64_t& full) {
    cute::tma_store_fence();  // wgmma reads through the async proxy, which needs this fence
    cute::arrive_barrier(full);
  }

  // Reads this thread's part of the register operand for the four wgmma instructions of a stage.
  static CUTE_DEVICE void read(float const* plain, int stage, float (&to)[4][4]) {
    CUTE_UNROLL
    for (int k = 0; k < 4; ++k) {
      CUTE_UNROLL
      for (int j = 0; j < 4; ++j)
        to[k][j] = plain[Plain::at(first_row(), j % 2 * 8, lane() % 4, k * 8 + j / 2 * 4, stage)];
    }
  }

  // Starts the wgmma instructions of a stage. The sums start from zero.
  template <class Part, class Sums>
  static CUTE_DEVICE void start(Part const& high, Part const& low, Storage& storage, int stage,
                                   Sums& sums) {
    const auto shared_high = Split::descriptor(storage.parts[0][stage]);
    cute::MMA_Atom<Op> atom;
    atom.accumulate_ = cute::SM90::GMMA::ScaleOut::Zero;
    auto add = [&](auto const& a, cute::SM90::GMMA::DescriptorIterator b) {
      cute::gemm(atom, a, cute::make_tensor(b, cute::Layout<cute::_1>{}), sums);
      atom.accumulate_ = cute::SM90::GMMA::ScaleOut::One;
    };
    cute::warpgroup_fence_operand(sums);
    cute::warpgroup_arrive();
    // An instruction reads 32 bytes along k, and a descriptor counts units of 16 bytes.
    if constexpr (Products == 3) {
      const auto shared_low = Split::descriptor(storage.parts[1][stage]);
      CUTE_UNROLL
      for (int k = 0; k < 4; ++k) {
        add(low(cute::_, k), shared_high + 2 * k);
        add(high(cute::_, k), shared_low + 2 * k);
      }
    }
    // The large products come last, because each addition to a large sum loses half an ulp on
    // average.
    CUTE_UNROLL
    for (int k = 0; k < 4; ++k) add(high(cute::_, k), shared_high + 2 * k);
    cute::warpgroup_commit_batch();
  }

  CUTE_DEVICE void next_stage() {
    if (++stage_ == Stages) stage_ = 0, phase_ ^= 1;
  }

  int stage_ = 0, phase_ = 0;  // position in the ring of stages
  int in_flight_ = -1;         // the stage that a producer has not published yet
};

}  // namespace cutegen
