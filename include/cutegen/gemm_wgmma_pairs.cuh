// SPDX-License-Identifier: Apache-2.0
// Matrix product with float32 accuracy on Hopper's tensor cores, through pairs of half-precision
// values: C(m, n) = sum over k of A(m, k) * B(n, k).
//
// Contract: this header needs sm_90a. The functions of cutegen/half_pairs.cuh must have split both
// operands into high and low parts. The kernel adds low * high, high * low and high * high; it
// omits only low * low, which is about 2^-22 of the result. Half precision has as many significant
// bits as tf32, and tensor cores multiply it twice as fast. Because tensor cores truncate their
// sums, the sums of each tile along k start at zero, and the CUDA cores add them to the results in
// float32.
//
// load() takes a tensor map of each operand with the axes (along, across, matrix), where `along` is
// the contiguous axis, matrix 2 * batch holds the high part and matrix 2 * batch + 1 the low part.
// Boxes have 64 elements along the contiguous axis. TileM is 128 (two consumer warpgroups); TileN
// is 128 or 192. With Cluster 2, two CTAs whose tiles are neighbours in m share the tiles of B: one
// loads the high part for both, the other one the low part.
//
// scale() must follow multiply(): it divides the results by the scales of both operands. Apart from
// scale(), use a WgmmaPairGemm like a WgmmaGemm (cutegen/gemm_wgmma.cuh).
//
// Example: using Gemm = cutegen::WgmmaPairGemm<128, 192, 2, true, false, 1>;
//          gemm.load(map_a, map_b, batch, batch, tile, 0, tiles_k, storage);   // producer
//          gemm.multiply(0, tiles_k, storage);                                 // consumers
//          gemm.scale(exponent_a, exponent_b);
#pragma once

#include <cutegen/gemm_wgmma.cuh>
#include <cutegen/half_pairs.cuh>

namespace cutegen {

template <int TileM, int TileN, int Stages, bool DepthA, bool DepthB, int Cluster>
struct WgmmaPairGemm : WgmmaGemm<cute::half_t, cute::half_t, cute::half_t, TileM, TileN, Stages, 1,
                                 1, DepthA, DepthB, true, Cluster> {
  using Base = WgmmaGemm<cute::half_t, cute::half_t, cute::half_t, TileM, TileN, Stages, 1, 1,
                         DepthA, DepthB, true, Cluster>;
  using typename Base::Op;
  using typename Base::TileA;
  using typename Base::TileB;
  using Base::kConsumers;
  using Base::kFirstProducer;
  using Base::kPart;
  using Base::results;
  static constexpr int kResident = 1, kThreads = kFirstProducer + 128;
  static_assert(Base::kBlocks == 1 && kPart <= 96, "sums and results stay in registers");

  struct alignas(1024) Storage {
    cute::half_t a[Stages][2][TileA::kElements], b[Stages][2][TileB::kElements];  // high, low
    // The low parts of a stage become empty first, so that the producer can load them earlier.
    uint64_t full[Stages], empty[Stages][2];
  };

  // All threads must call begin() first.
  CUTE_DEVICE void begin(Storage& storage) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Stages; ++s) {
        cute::initialize_barrier(storage.full[s], 1);
        for (int part = 0; part < 2; ++part)
          cute::initialize_barrier(storage.empty[s][part], 4 * kConsumers * Cluster);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if constexpr (Cluster > 1) cute::cluster_sync();
    else __syncthreads();
  }

  static CUTE_DEVICE void start_loading() {
    cutlass::arch::warpgroup_reg_dealloc<kConsumers == 3 ? 32 : 40>();
  }
  static CUTE_DEVICE void start_multiplying() {
    cutlass::arch::warpgroup_reg_alloc<kConsumers == 3 ? 160 : 232>();
  }

  // Loads the tiles [first, last) along k for one tile of results.
  CUTE_DEVICE void load(cute::TmaDescriptor const& a, cute::TmaDescriptor const& b, int batch_a,
                        int batch_b, TileIndex tile, int first, int last, Storage& storage) {
    constexpr int kBytes = 2 * int(sizeof(cute::half_t)) * (TileA::kElements + TileB::kElements);
    if (threadIdx.x != kFirstProducer) return;
    const int rank = Cluster > 1 ? int(cute::block_rank_in_cluster()) : 0;
    for (int step = first; step < last; ++step, this->advance()) {
      const int stage = this->stage_;
      uint64_t& full = storage.full[stage];
      CUTE_UNROLL
      for (int part = 1; part >= 0; --part) {
        cute::wait_barrier(storage.empty[stage][part], this->phase_ ^ 1);
        if (part == 1) cute::set_barrier_transaction_bytes(full, kBytes);
        load_part<TileA, TileM, 1, DepthA>(a, storage.a[stage][part], full, step, tile.m * TileM,
                                           2 * batch_a + part);
        if (Cluster == 1 || part == rank)
          load_part<TileB, TileN, Cluster, DepthB>(b, storage.b[stage][part], full, step,
                                                   tile.n * TileN, 2 * batch_b + part);
      }
    }
  }

  // Multiplies the tiles [first, last) along k that the producer loads.
  CUTE_DEVICE void multiply(int first, int last, Storage& storage) {
    CUTE_UNROLL
    for (int i = 0; i < kPart; ++i) results[0][i] = 0;
    auto sums = cute::make_tensor<float>(cute::Shape<cute::Int<kPart>>{});
    for (int step = first; step < last; ++step) {
      const int stage = this->stage_;
      cute::wait_barrier(storage.full[stage], this->phase_);
      start(storage.a[stage], storage.b[stage], sums);
      this->advance();
      cute::warpgroup_wait<1>();
      Base::release(storage.empty[stage][1]);
      cute::warpgroup_wait<0>();
      cute::warpgroup_fence_operand(sums);
      Base::release(storage.empty[stage][0]);
      CUTE_UNROLL
      for (int i = 0; i < kPart; ++i) results[0][i] += sums(i);
    }
  }

  // Divides the results by 2^(exponent_a + exponent_b). scale() multiplies by two factors, because
  // each of them is then a normal float.
  CUTE_DEVICE void scale(int exponent_a, int exponent_b) {
    const int all = -(exponent_a + exponent_b), half = all / 2;
    const float one = power_of_two(half), other = power_of_two(all - half);
    CUTE_UNROLL
    for (int i = 0; i < kPart; ++i) results[0][i] = results[0][i] * one * other;
  }

 private:
  // Loads Rows rows, which begin at row `top`, for `Shares` CTAs of the cluster.
  template <class Tile, int Rows, int Shares, bool AlongDepth>
  static CUTE_DEVICE void load_part(cute::TmaDescriptor const& map, cute::half_t* to,
                                    uint64_t& full, int step, int top, int matrix) {
    constexpr int kWidth = AlongDepth ? Rows : Tile::kLine;
    const int depth = step * Tile::kDepth;
    const auto hint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    CUTE_UNROLL
    for (int i = 0; i < Rows; i += kWidth) {
      const int along = AlongDepth ? depth : top + i, across = AlongDepth ? top : depth;
      cute::half_t* target = to + i * Tile::kLine;
      if constexpr (Shares > 1)
        cute::SM90_TMA_LOAD_MULTICAST_3D::copy(&map, &full, (1 << Shares) - 1, hint, target, along,
                                               across, matrix);
      else
        cute::SM90_TMA_LOAD_3D::copy(&map, &full, hint, target, along, across, matrix);
    }
  }

  // Starts the wgmma instructions of a stage. The sums start from zero, and the large products come
  // last, because each addition to a large sum loses half an ulp on average.
  template <class A, class B, class Sums>
  static CUTE_DEVICE void start(A const& a, B const& b, Sums& sums) {
    const auto place = Base::part() * 64 * TileA::kLine;
    cute::MMA_Atom<Op> atom;
    atom.accumulate_ = cute::SM90::GMMA::ScaleOut::Zero;
    auto add = [&](int part_a, int part_b, int k) {
      const auto from_a = TileA::template descriptor<64>(a[part_a] + place);
      const auto from_b = TileB::template descriptor<TileN>(b[part_b]);
      cute::gemm(atom, cute::make_tensor(from_a + k * TileA::kStep, cute::Layout<cute::_1>{}),
                 cute::make_tensor(from_b + k * TileB::kStep, cute::Layout<cute::_1>{}), sums);
      atom.accumulate_ = cute::SM90::GMMA::ScaleOut::One;
    };
    cute::warpgroup_fence_operand(sums);
    cute::warpgroup_arrive();
    CUTE_UNROLL
    for (int k = 0; k < 4; ++k) {
      add(1, 0, k);
      add(0, 1, k);
    }
    cute::warpgroup_commit_batch();
    CUTE_UNROLL
    for (int k = 0; k < 4; ++k) add(0, 0, k);
    cute::warpgroup_commit_batch();
  }
};

}  // namespace cutegen
