// SPDX-License-Identifier: Apache-2.0
// Attention on Hopper's tensor cores:
// out(m, :) = sum over n of softmax(scale * Q(m, :) K(n, :))(n) * V(n, :).
//
// Contract: this header needs sm_90a and 16-bit elements. A CTA computes tiles of kRows rows of one
// head. The last warpgroup (the producer) loads Q once per tile, and loads tiles of kKeys keys and
// values into a ring of buffers. Each other warpgroup (a consumer) computes 64 rows of the tile. If
// shared memory has space for two tiles of Q, the producer loads the next tile's Q early. Attention
// scores stay in registers. The softmax keeps a running maximum and sum; its weights, rounded to
// Element, are an operand of the product with V. While the tensor cores multiply for one consumer,
// another consumer computes its softmax.
//
// attend() processes the key tiles [first, last) in reverse order. It ignores keys with an index of
// `keys` or more and, with Causal, keys after row + diagonal. The function mask(row) returns a
// function (key, a, b), which changes the scaled score a of the key with index `key` and the scaled
// score b of the next key. NoMask changes no score. A HidingMask may only set scores to -INFINITY;
// it receives unscaled scores, which saves multiplications. `scale` must be positive. If a mask
// hides all keys of a row, the row's results are 0 if `safe` is true, otherwise NaN.
//
// If Tma is true, load() takes tensor maps with the axes (along, row, head, batch, part), and the
// box of a tensor map has 64 elements and all rows of a tile; `along` is the position in the head.
// If Tma is false, load() takes tensors with the axes (row, along) and any strides.
//
// Example: Attention a;
//          if (a.begin(storage)) a.load(map_q, map_k, map_v, place, tile, storage);
//          else { a.attend(tile, keys, 0, scale, true, NoMask{}, storage); a.each<2>(...); a.end(); }
#pragma once

#include <cutegen/gemm_wgmma.cuh>

namespace cutegen {

struct NoMask {};

template <class Mask>
struct HidingMask {
  Mask mask;
  CUTE_DEVICE auto operator()(int row) const { return mask(row); }
};
template <class Mask>
HidingMask(Mask) -> HidingMask<Mask>;

// mask_adds_v is true if a mask may add to scores, so that attend() must scale the scores first.
template <class Mask>
inline constexpr bool mask_adds_v = true;
template <>
inline constexpr bool mask_adds_v<NoMask> = false;
template <class Mask>
inline constexpr bool mask_adds_v<HidingMask<Mask>> = false;

// An AttentionTile is a tile of queries that begins at `row`, with its key tiles [first, last).
struct AttentionTile {
  int row, first, last;
};

// An AttentionPlace holds the coordinates of a tile's head in the tensor maps.
struct AttentionPlace {
  int head, key_head, batch, part_q, part_k, part_v;
};

// Returns the smallest of this kernel's instruction widths that covers `width` columns.
CUTE_HOST_DEVICE constexpr int columns_of_product(int width) {
  for (int columns : {16, 32, 64, 96, 128, 192})
    if (width <= columns) return columns;
  return 256;
}

CUTE_DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Reads the mask's values for `key` and the next key. If Pairs is true, two_of_mask() uses one
// aligned access.
template <bool Pairs, class T>
CUTE_DEVICE Pack<T, 2> two_of_mask(T const* line, int key, int keys, int64_t along) {
  if constexpr (Pairs) return *reinterpret_cast<Pack<T, 2> const*>(line + key);
  Pack<T, 2> pair;
  pair.element[0] = line[key * along];
  pair.element[1] = line[cute::min(key + 1, keys - 1) * along];
  return pair;
}

template <class Element>
CUTE_DEVICE uint32_t round_pair(float low, float high) {
  uint32_t pair;
  if constexpr (cute::is_same_v<Element, cute::half_t>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// An AttentionOperand is a tile of Rows x (64 * Blocks) elements in shared memory, in blocks of 64
// columns with swizzled rows of 128 bytes. The summed axis of a product runs along a row for Q and
// K, and across the rows for V.
template <class Element, int Rows, int Blocks>
struct AttentionOperand {
  static constexpr int kBlock = Rows * 64, kElements = kBlock * Blocks;
  static constexpr int kBlockStep = kBlock * 2 / 16;  // blocks are kBlockStep * 16 bytes apart

  template <int kRows>
  static CUTE_DEVICE auto along_depth(Element const* tile) {
    return LineTile<Element, Rows, true>::template descriptor<kRows>(tile);
  }
  static CUTE_DEVICE cute::SM90::GMMA::DescriptorIterator across_depth(Element const* tile) {
    using Atom = cute::GMMA::Layout_MN_SW128_Atom<Element>;
    using Layout = decltype(cute::tile_to_shape(
        Atom{}, cute::Shape<cute::Int<64 * Blocks>, cute::Int<Rows>>{},
        cute::Step<cute::_2, cute::_1>{}));
    auto whole = cute::make_tensor(cute::make_smem_ptr(tile), Layout{});
    return {cute::SM90::GMMA::make_gmma_desc<cute::SM90::GMMA::Major::MN>(
        cute::local_tile(whole, cute::Shape<cute::Int<64 * Blocks>, cute::_16>{},
                         cute::make_coord(0, 0)))};
  }
  static CUTE_DEVICE void load(cute::TmaDescriptor const& map, uint64_t& full, Element* to, int row,
                               int head, int batch, int part) {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    CUTE_UNROLL
    for (int b = 0; b < Blocks; ++b)
      cute::SM90_TMA_LOAD_5D::copy(&map, &full, kHint, to + b * kBlock, b * 64, row, head, batch,
                                   part);
  }
  // Copies a tile without TMA. The producer's 128 threads must call load() together. Elements
  // beyond the tensor's edges read as zero.
  template <class Tensor>
  static CUTE_DEVICE void load(Tensor const& from, Element* to, int first, int thread) {
    const int rows = cute::size<0>(from), width = cute::size<1>(from);
    for (int i = thread; i < Rows * Blocks * 8; i += 128) {
      const int row = i / (Blocks * 8), chunk = i % (Blocks * 8), along = chunk * 8;
      Pack<Element, 8> pack{};
      CUTE_UNROLL
      for (int j = 0; j < 8; ++j)
        if (first + row < rows && along + j < width) pack.element[j] = from(first + row, along + j);
      Element* target = to + chunk / 8 * kBlock + row * 64 + (chunk % 8 ^ row % 8) * 8;
      *reinterpret_cast<Pack<Element, 8>*>(target) = pack;
    }
  }
};

template <class Element, int HeadDim, int ValueDim, int Consumers, int Keys, int Stages, bool Causal,
          bool Tma>
struct WgmmaAttention {
  static constexpr int kRows = 64 * Consumers, kKeys = Keys;
  static constexpr int kHeadSteps = (HeadDim + 15) / 16, kHeadBlocks = (HeadDim + 63) / 64;
  static constexpr int kWidth = columns_of_product(ValueDim), kValueBlocks = (kWidth + 63) / 64;
  static constexpr int kScores = Keys / 2, kResults = kWidth / 2;  // floats that a thread holds
  static constexpr int kFirstProducer = 128 * Consumers, kThreads = kFirstProducer + 128;
  // each() can pass at most kVector neighbouring results to its function.
  static constexpr int kVector = kWidth % 32 == 0 ? 8 : 2;
  static_assert(HeadDim <= 256 && ValueDim <= 256 && Keys % 16 == 0 && Stages > 1);
  static_assert(sizeof(Element) == 2, "wgmma transposes 16-bit types only");

  using Queries = AttentionOperand<Element, kRows, kHeadBlocks>;
  using KeyTile = AttentionOperand<Element, Keys, kHeadBlocks>;
  using ValueTile = AttentionOperand<Element, Keys, kValueBlocks>;
  using Score = decltype(cute::SM90::GMMA::ss_op_selector<
                         Element, Element, float, cute::Shape<cute::_64, cute::Int<Keys>, cute::_16>,
                         cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::K>());
  using Weigh = decltype(cute::SM90::GMMA::rs_op_selector<
                         Element, Element, float,
                         cute::Shape<cute::_64, cute::Int<kWidth>, cute::_16>,
                         cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::MN>());
  template <int Tiles>  // the storage has Tiles tiles of Q
  struct alignas(1024) StorageOf {
    Element q[Tiles][Queries::kElements];
    Element k[Stages][KeyTile::kElements], v[Stages][ValueTile::kElements];
    uint64_t q_full[Tiles], q_empty[Tiles];
    uint64_t k_full[Stages], k_empty[Stages], v_full[Stages], v_empty[Stages];
  };
  // kResident CTAs fit on an SM, and each CTA may use kMost bytes of shared memory.
  static constexpr int kResident = Consumers == 1 && sizeof(StorageOf<1>) <= 112 * 1024 ? 2 : 1;
  static constexpr int kMost = (kResident == 2 ? 112 : 227) * 1024;
  static constexpr int kQueries = sizeof(StorageOf<2>) <= kMost ? 2 : 1;
  using Storage = StorageOf<kQueries>;

  float results[kResults];
  // exponent[i] is log2 of the sum of exponentials of this thread's first row (i = 0) or of the row
  // 8 below it (i = 1).
  float exponent[2];

  // Returns the number of key tiles that the tile of queries at `row` needs.
  static CUTE_DEVICE int key_tiles(int row, int keys, int diagonal) {
    const int end = Causal ? cute::min(keys, row + kRows + diagonal) : keys;
    return end <= 0 ? 0 : (end + Keys - 1) / Keys;
  }

  // All threads must call begin() first. begin() returns true in the producer's threads, which may
  // then call only load(), because the producer gives most of its registers to the consumers.
  CUTE_DEVICE bool begin(Storage& storage) {
    if (threadIdx.x == 0) {
      constexpr int kLoads = Tma ? 1 : 128, kReaders = 4 * Consumers;
      for (int s = 0; s < kQueries; ++s) {
        cute::initialize_barrier(storage.q_full[s], kLoads);
        cute::initialize_barrier(storage.q_empty[s], kReaders);
      }
      for (int s = 0; s < Stages; ++s) {
        cute::initialize_barrier(storage.k_full[s], kLoads);
        cute::initialize_barrier(storage.v_full[s], kLoads);
        cute::initialize_barrier(storage.k_empty[s], kReaders);
        cute::initialize_barrier(storage.v_empty[s], kReaders);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= kFirstProducer) {
      release_registers();
      return true;
    }
    take_registers();
    if (warpgroup() == Consumers - 1) pass_turn();
    return false;
  }

  // Consumers must call end() last. begin() and attend() leave one arrival in a named barrier, and
  // end() completes this barrier.
  CUTE_DEVICE void end() const {
    if (warpgroup() == 0) take_turn();
  }

  // Loads Q, K and V for attend(). One thread of the producer issues the copies.
  CUTE_DEVICE void load(cute::TmaDescriptor const& q, cute::TmaDescriptor const& k,
                        cute::TmaDescriptor const& v, AttentionPlace const& at,
                        AttentionTile const& tile, Storage& storage) {
    static_assert(Tma);
    if (threadIdx.x != kFirstProducer || tile.first >= tile.last) return;
    constexpr int kBytes = sizeof(Element);
    const int slot = queries_.stage;
    cute::wait_barrier(storage.q_empty[slot], queries_.phase ^ 1);
    cute::set_barrier_transaction_bytes(storage.q_full[slot], kBytes * Queries::kElements);
    Queries::load(q, storage.q_full[slot], storage.q[slot], tile.row, at.head, at.batch, at.part_q);
    queries_.advance();
    for (int n = tile.last - 1; n >= tile.first; --n, keys_.advance()) {
      const int s = keys_.stage;
      cute::wait_barrier(storage.k_empty[s], keys_.phase ^ 1);
      cute::set_barrier_transaction_bytes(storage.k_full[s], kBytes * KeyTile::kElements);
      KeyTile::load(k, storage.k_full[s], storage.k[s], n * Keys, at.key_head, at.batch, at.part_k);
      cute::wait_barrier(storage.v_empty[s], keys_.phase ^ 1);
      cute::set_barrier_transaction_bytes(storage.v_full[s], kBytes * ValueTile::kElements);
      ValueTile::load(v, storage.v_full[s], storage.v[s], n * Keys, at.key_head, at.batch,
                      at.part_v);
    }
  }

  // Loads Q, K and V without TMA. q, k and v are tensors of one head with the axes (row, along).
  template <class Q, class K, class V>
  CUTE_DEVICE void load(Q const& q, K const& k, V const& v, AttentionTile const& tile,
                        Storage& storage) {
    static_assert(!Tma);
    if (tile.first >= tile.last) return;
    const int thread = threadIdx.x - kFirstProducer, slot = queries_.stage;
    cute::wait_barrier(storage.q_empty[slot], queries_.phase ^ 1);
    Queries::load(q, storage.q[slot], tile.row, thread);
    publish(storage.q_full[slot]);
    queries_.advance();
    for (int n = tile.last - 1; n >= tile.first; --n, keys_.advance()) {
      const int s = keys_.stage;
      cute::wait_barrier(storage.k_empty[s], keys_.phase ^ 1);
      KeyTile::load(k, storage.k[s], n * Keys, thread);
      publish(storage.k_full[s]);
      cute::wait_barrier(storage.v_empty[s], keys_.phase ^ 1);
      ValueTile::load(v, storage.v[s], n * Keys, thread);
      publish(storage.v_full[s]);
    }
  }

  // Computes attention for a tile of queries and stores it in `results`.
  template <class Mask>
  CUTE_DEVICE void attend(AttentionTile const& tile, int keys, int diagonal, float scale, bool safe,
                          Mask const& mask, Storage& storage) {
    constexpr float kLog2e = 1.4426950408889634f;
    constexpr bool kMasked = !cute::is_same_v<Mask, NoMask>;
    auto scores = cute::make_tensor<float>(cute::Shape<cute::Int<kScores>>{});
    auto sums = cute::make_tensor<float>(cute::Shape<cute::Int<kResults>>{});
    auto weights = cute::make_tensor<Element>(cute::Shape<cute::_8, cute::Int<Keys / 16>>{});
    cute::clear(sums);
    Softmax softmax{mask_adds_v<Mask> ? kLog2e : scale * kLog2e};
    const int row = tile.row + row_of_thread();
    // ends[i] is the first key that must not affect this thread's row `row` (i = 0) or `row` + 8.
    const int ends[2] = {Causal ? cute::min(keys, row + diagonal + 1) : keys,
                         Causal ? cute::min(keys, row + diagonal + 9) : keys};
    // Tiles of keys before `edge` need no hide(), because all rows of the warpgroup see these keys.
    const int edge = Causal ? cute::min(keys, tile.row + 64 * warpgroup() + diagonal + 1) : keys;
    auto change = [&](int n, auto hides) {
      if constexpr (kMasked) apply<hides.value>(scores, mask, n * Keys, row, scale, keys);
      if constexpr (hides.value) hide(scores, n * Keys, ends);
    };
    Element const* q = storage.q[queries_.stage];
    auto step = [&](int n, auto hides) {
      cute::wait_barrier(storage.k_full[keys_.stage], keys_.phase);
      take_turn();
      score(q, storage.k[keys_.stage], scores);
      cute::wait_barrier(storage.v_full[values_.stage], values_.phase);
      weigh(weights, storage.v[values_.stage], sums);
      pass_turn();
      cute::warpgroup_wait<1>();
      cute::warpgroup_fence_operand(scores);
      release(storage.k_empty[keys_.stage]);
      keys_.advance();
      change(n, hides);
      softmax.update(scores);
      cute::warpgroup_wait<0>();
      cute::warpgroup_fence_operand(sums);
      release(storage.v_empty[values_.stage]);
      values_.advance();
      softmax.rescale(sums);
      round(scores, weights);
    };
    if (tile.first < tile.last) {
      int n = tile.last - 1;
      cute::wait_barrier(storage.q_full[queries_.stage], queries_.phase);
      cute::wait_barrier(storage.k_full[keys_.stage], keys_.phase);
      score(q, storage.k[keys_.stage], scores);
      cute::warpgroup_wait<0>();
      cute::warpgroup_fence_operand(scores);
      release(storage.k_empty[keys_.stage]);
      keys_.advance();
      change(n, cute::true_type{});
      softmax.update(scores);
      round(scores, weights);
      for (--n; n >= tile.first && (n + 1) * Keys > edge; --n) step(n, cute::true_type{});
      for (; n >= tile.first; --n) step(n, cute::false_type{});
      release(storage.q_empty[queries_.stage]);
      queries_.advance();
      cute::wait_barrier(storage.v_full[values_.stage], values_.phase);
      weigh(weights, storage.v[values_.stage], sums);
      cute::warpgroup_wait<0>();
      cute::warpgroup_fence_operand(sums);
      release(storage.v_empty[values_.stage]);
      values_.advance();
    }
    softmax.finish(safe, exponent);
    softmax.rescale(sums);
    CUTE_UNROLL
    for (int i = 0; i < kResults; ++i) results[i] = sums(i);
  }

  // Calls f(results, row, column) for every V neighbouring results of a row; V is 1, 2 or kVector.
  // All threads of a warp must call each(). Row 0 is the first row of the tile.
  template <int V, class F>
  CUTE_DEVICE void each(F&& f) const {
    static_assert(V == 1 || V == 2 || (V == 8 && kVector == 8));
    const int row = row_of_thread(), lane = threadIdx.x % 32;
    CUTE_UNROLL
    for (int i = 0; i < kResults; i += V) {
      float c[V];
      if constexpr (V == 8) {  // gather_columns() covers 32 columns of one of the thread's two rows
        const int first = i / 16 * 16 + i / 8 % 2 * 2;
        gather_columns(results, first, c);
        f(c, row + i / 8 % 2 * 8, first / 16 * 32 + lane % 4 * 8);
      } else {
        CUTE_UNROLL
        for (int v = 0; v < V; ++v) c[v] = results[i + v];
        f(c, row + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2);
      }
    }
  }

  // Calls f(exponent, row) once for each row. `exponent` is log2 of the sum of the row's
  // exponentials.
  template <class F>
  CUTE_DEVICE void each_row(F&& f) const {
    if (threadIdx.x % 4 == 0) f(exponent[0], row_of_thread());
    if (threadIdx.x % 4 == 1) f(exponent[1], row_of_thread() + 8);
  }

 private:
  template <int Size>
  struct Ring {
    int stage = 0, phase = 0;
    CUTE_DEVICE void advance() {
      if (++stage == Size) stage = 0, phase ^= 1;
    }
  };

  // Softmax processes a thread's two rows. Element i of a register fragment is in row i / 2 % 2.
  struct Softmax {
    float scale;  // score * scale is the exponent to base 2
    float highest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0}, factor[2] = {0, 0};

    // Replaces scores by 2^(score * scale - maximum), and updates the running maximum and sum.
    template <class Scores>
    CUTE_DEVICE void update(Scores& scores) {
      CUTE_UNROLL
      for (int r = 0; r < 2; ++r) {
        // Two partial maxima and two partial sums make the latencies of their operations overlap.
        float mosts[2] = {highest[r], -INFINITY}, sums[2] = {0, 0};
        CUTE_UNROLL
        for (int i = 0; i < kScores; i += 4)
          mosts[i / 4 % 2] = fmaxf(mosts[i / 4 % 2], fmaxf(scores(i + 2 * r), scores(i + 2 * r + 1)));
        float most = fmaxf(mosts[0], mosts[1]);
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        const float base = most == -INFINITY ? 0.0f : most * scale;
        factor[r] = power_of_two(highest[r] * scale - base);
        highest[r] = most;
        CUTE_UNROLL
        for (int i = 0; i < kScores; i += 4) {
          CUTE_UNROLL
          for (int j = 0; j < 2; ++j) {
            float& score = scores(i + 2 * r + j);
            score = power_of_two(score * scale - base);
            sums[j] += score;
          }
        }
        total[r] = total[r] * factor[r] + (sums[0] + sums[1]);
      }
    }
    template <class Sums>
    CUTE_DEVICE void rescale(Sums& sums) const {
      CUTE_UNROLL
      for (int i = 0; i < kResults; ++i) sums(i) *= factor[i / 2 % 2];
    }
    // Sets the factors so that the next rescale() divides by the sum of exponentials.
    CUTE_DEVICE void finish(bool safe, float (&exponent)[2]) {
      CUTE_UNROLL
      for (int r = 0; r < 2; ++r) {
        total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1);
        total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2);
        const bool none = total[r] == 0.0f;
        factor[r] = none ? (safe ? 0.0f : __int_as_float(0x7fc00000)) : 1.0f / total[r];
        exponent[r] = none ? -INFINITY : highest[r] * scale + log2f(total[r]);
      }
    }
  };

  static constexpr bool kGives = Consumers > 1 || kResident == 2;
  static CUTE_DEVICE void release_registers() {
    if constexpr (kGives) cutlass::arch::warpgroup_reg_dealloc<Consumers == 3 ? 32 : Tma ? 40 : 56>();
  }
  static CUTE_DEVICE void take_registers() {
    if constexpr (kGives)
      cutlass::arch::warpgroup_reg_alloc<Consumers == 3   ? 160
                                         : Consumers == 1 ? (Tma ? 216 : 200)
                                                          : (Tma ? 232 : 224)>();
  }

  static CUTE_DEVICE int warpgroup() { return threadIdx.x / 128; }
  static CUTE_DEVICE int row_of_thread() { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4; }

  // Named barriers, numbered from 1, make the consumers issue their products one after the other.
  static CUTE_DEVICE void take_turn() {
    if constexpr (Consumers > 1)
      asm volatile("bar.sync %0, 256;" ::"r"(1 + warpgroup()) : "memory");
  }
  static CUTE_DEVICE void pass_turn() {
    if constexpr (Consumers > 1)
      asm volatile("bar.arrive %0, 256;" ::"r"(1 + (warpgroup() + 1) % Consumers) : "memory");
  }

  // Signals to the consumers that this thread's part of a tile has arrived.
  static CUTE_DEVICE void publish(uint64_t& full) {
    cute::tma_store_fence();  // wgmma reads through the async proxy, which needs this fence
    cute::arrive_barrier(full);
  }
  static CUTE_DEVICE void release(uint64_t& empty) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) cute::arrive_barrier(empty);
  }

  template <class Scores>
  static CUTE_DEVICE void score(Element const* q, Element const* k, Scores& scores) {
    cute::MMA_Atom<Score> atom;
    const auto from_q = Queries::template along_depth<64>(q + warpgroup() * 64 * 64);
    const auto from_k = KeyTile::template along_depth<Keys>(k);
    atom.accumulate_ = cute::SM90::GMMA::ScaleOut::Zero;
    cute::warpgroup_fence_operand(scores);
    cute::warpgroup_arrive();
    CUTE_UNROLL
    for (int i = 0; i < kHeadSteps; ++i) {
      cute::gemm(atom,
                 cute::make_tensor(from_q + (i / 4 * Queries::kBlockStep + i % 4 * 2),
                                   cute::Layout<cute::_1>{}),
                 cute::make_tensor(from_k + (i / 4 * KeyTile::kBlockStep + i % 4 * 2),
                                   cute::Layout<cute::_1>{}),
                 scores);
      atom.accumulate_ = cute::SM90::GMMA::ScaleOut::One;
    }
    cute::warpgroup_commit_batch();
  }

  template <class Weights, class Sums>
  static CUTE_DEVICE void weigh(Weights& weights, Element const* v, Sums& sums) {
    cute::MMA_Atom<Weigh> atom;
    const auto from_v = ValueTile::across_depth(v);
    atom.accumulate_ = cute::SM90::GMMA::ScaleOut::One;
    cute::warpgroup_fence_operand(weights);
    cute::warpgroup_fence_operand(sums);
    cute::warpgroup_arrive();
    CUTE_UNROLL
    for (int i = 0; i < Keys / 16; ++i)
      cute::gemm(atom, weights(cute::_, i),
                 cute::make_tensor(from_v + i * (16 * 128 / 16), cute::Layout<cute::_1>{}), sums);
    cute::warpgroup_commit_batch();
  }

  template <class Scores, class Weights>
  static CUTE_DEVICE void round(Scores const& scores, Weights& weights) {
    auto pairs = cute::recast<uint32_t>(weights);
    CUTE_UNROLL
    for (int i = 0; i < kScores / 2; ++i)
      pairs(i) = round_pair<Element>(scores(2 * i), scores(2 * i + 1));
  }

  template <class Scores>
  static CUTE_DEVICE void hide(Scores& scores, int key, int const (&ends)[2]) {
    const int first = key + threadIdx.x % 4 * 2;
    CUTE_UNROLL
    for (int i = 0; i < kScores; ++i)
      if (i / 4 * 8 + i % 2 >= ends[i / 2 % 2] - first) scores(i) = -INFINITY;
  }

  template <bool Last, class Scores, class Mask>
  static CUTE_DEVICE void apply(Scores& scores, Mask const& mask, int key, int row, float scale,
                                int keys) {
    const int first = key + threadIdx.x % 4 * 2;
    const auto upper = mask(row), lower = mask(row + 8);
    CUTE_UNROLL
    for (int i = 0; i < kScores; i += 2) {
      const int at = first + i / 4 * 8;
      if constexpr (mask_adds_v<Mask>) scores(i) *= scale, scores(i + 1) *= scale;
      if (Last && at >= keys) continue;
      if (i % 4 == 0)
        upper(at, scores(i), scores(i + 1));
      else
        lower(at, scores(i), scores(i + 1));
    }
  }

  Ring<kQueries> queries_;  // rings hold this thread's positions in the buffers
  Ring<Stages> keys_, values_;
};

}  // namespace cutegen
