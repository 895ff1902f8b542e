// SPDX-License-Identifier: Apache-2.0
// Matrix product for few rows m, whose speed depends on reading the weights: C(m, n) = sum over k
// of A(m, k) * W(n, k).
//
// Contract: W is contiguous along k, with 16-bit, 8-bit or 4-bit elements. A thread reads 16 bytes
// of W (a segment) at a time, converts them to Element in registers, and multiplies them with
// mma.sync. The kernel reads each weight once. Only A passes through shared memory. A CTA computes
// TileM x TileN results, and its warps divide the rows of W and the axis k. Each weight w stands
// for (w - zero) * scale; `scales` and `zeros` are a Grid, one_value() or NoGrid. Scales and zeros
// may change along k only at the ends of 16-byte segments. If scales change at most once per 64
// bytes (a chunk), the kernel multiplies float32 sums by the scales; otherwise it multiplies each
// weight and rounds the product to Element. VectorB must be 1 unless each row of W is a multiple of
// 16 bytes long.
//
// A matrix product may add its terms in any order. The kernel therefore permutes k, so that each
// thread passes the segment of W that it has read to consecutive mma.sync instructions. A lies in
// shared memory in the permuted order. The kernel needs no shared memory and no shuffles for W.
//
// The CTAs of a cluster may compute parts of the depth of the same tile. each_of_cluster() adds the
// parts through the shared memory of the cluster.
//
// Example: Gemm gemm; gemm.run(A, W, tile, 0, tiles, storage, scales, cutegen::NoGrid{});
//          gemm.each<2>(tile, [&](float const (&c)[2], int m, int n) { ... });
#pragma once

#include <cute/arch/cluster_sm90.hpp>
#include <cutegen/gemm_mma.cuh>

namespace cutegen {

// Nibbles are two 4-bit weights in a byte. The first weight of a byte is in the low bits or, with
// HighFirst, in the high bits. The value of a weight is its bits minus Zero.
template <int Zero, bool HighFirst>
struct Nibbles {
  uint8_t both;
};

// A Grid has one value for each block of Rows x Depth weights. If Rows is 0, a block has all rows;
// if Depth is 0, a block has all of k.
template <int Rows, int Depth, class T>
struct Grid {
  T const* from;
  int64_t row_stride;
  CUTE_DEVICE T operator()(int row, int k) const {
    return from[(Rows == 0 ? 0 : row / (Rows == 0 ? 1 : Rows)) * row_stride +
                (Depth == 0 ? 0 : k / (Depth == 0 ? 1 : Depth))];
  }
};
template <int Rows, int Depth, class T>
CUTE_DEVICE Grid<Rows, Depth, T> grid(T const* from, int64_t row_stride) {
  return {from, row_stride};
}
template <class T>
struct OneValue {
  T value;
  CUTE_DEVICE T operator()(int, int) const { return value; }
};
template <class T>
CUTE_DEVICE OneValue<T> one_value(T value) {
  return {value};
}
struct NoGrid {
  CUTE_DEVICE float operator()(int, int) const { return 0.0f; }
};

// Computes (word & Mask) | Bits in one instruction; the compiler would use two.
template <uint32_t Mask, uint32_t Bits>
CUTE_DEVICE uint32_t masked(uint32_t word) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "n"(Mask), "n"(Bits));
  return result;
}

// Halves<Element> has the arithmetic on pairs of 16-bit elements in one register.
template <class Element>
struct Halves;
template <>
struct Halves<cute::bfloat16_t> {
  using Pair = __nv_bfloat162;
  static CUTE_DEVICE Pair twice(float x) { return __float2bfloat162_rn(x); }
  static CUTE_DEVICE Pair join(float x, float y) { return __floats2bfloat162_rn(x, y); }
  static CUTE_DEVICE float2 floats(Pair pair) { return __bfloat1622float2(pair); }
  // Converts bytes 0 and 2 of a word, as signed integers. A bfloat16 mantissa holds only 7 bits, so
  // from_signed() subtracts the value of the sign bit separately.
  static CUTE_DEVICE Pair from_signed(uint32_t bytes) {
    return __hsub2(bits(masked<0x007f007fu, 0x43004300u>(bytes)), bits(masked<0x00800080u, 0x43004300u>(bytes)));
  }
  template <int Zero>
  static CUTE_DEVICE Pair from_nibbles(uint32_t nibbles) {
    return __hsub2(bits(masked<0x000f000fu, 0x43004300u>(nibbles)), bits(0x43004300u + Zero * 0x10001u));
  }
  static CUTE_DEVICE Pair bits(uint32_t word) {
    Pair pair;
    memcpy(&pair, &word, sizeof(pair));
    return pair;
  }
};
template <>
struct Halves<cute::half_t> {
  using Pair = __half2;
  static CUTE_DEVICE Pair twice(float x) { return __float2half2_rn(x); }
  static CUTE_DEVICE Pair join(float x, float y) { return __floats2half2_rn(x, y); }
  static CUTE_DEVICE float2 floats(Pair pair) { return __half22float2(pair); }
  static CUTE_DEVICE Pair from_signed(uint32_t bytes) {
    return __hsub2(bits(masked<0x00ff00ffu, 0x64006400u>(bytes ^ 0x00800080u)), bits(0x64806480u));
  }
  template <int Zero>
  static CUTE_DEVICE Pair from_nibbles(uint32_t nibbles) {
    return __hsub2(bits(masked<0x000f000fu, 0x64006400u>(nibbles)), bits(0x64006400u + Zero * 0x10001u));
  }
  static CUTE_DEVICE Pair bits(uint32_t word) {
    Pair pair;
    memcpy(&pair, &word, sizeof(pair));
    return pair;
  }
};

// Converts the weights in a word of 4 bytes to kPairs pairs of elements. kNatural is true if the
// pairs keep the order of the weights.
template <class Element, class W>
struct WeightWord {
  using Math = Halves<Element>;
  using Pair = typename Math::Pair;
  static constexpr bool kNatural = true;
  static constexpr int kPairs = 2 / sizeof(W);
  static CUTE_DEVICE void expand(uint32_t word, Pair (&to)[kPairs]) {
    if constexpr (cute::is_same_v<W, Element>) {
      to[0] = Math::bits(word);
    } else if constexpr (sizeof(W) == 2) {
      Pack<W, 2> two;
      memcpy(&two, &word, sizeof(word));
      to[0] = Math::join(to_float(two.element[0]), to_float(two.element[1]));
    } else if constexpr (cute::is_same_v<W, int8_t>) {
      to[0] = Math::from_signed(__byte_perm(word, 0, 0x4140));
      to[1] = Math::from_signed(__byte_perm(word, 0, 0x4342));
    } else if constexpr (cute::is_same_v<W, uint8_t>) {
      const uint32_t less = word ^ 0x80808080u;  // subtracts 128, which makes the bytes signed
      to[0] = __hadd2(Math::from_signed(__byte_perm(less, 0, 0x4140)), Math::twice(128.0f));
      to[1] = __hadd2(Math::from_signed(__byte_perm(less, 0, 0x4342)), Math::twice(128.0f));
    } else {
      W four[4];
      float floats[4];
      memcpy(four, &word, sizeof(word));
      convert_all(four, floats);
      to[0] = Math::join(floats[0], floats[1]);
      to[1] = Math::join(floats[2], floats[3]);
    }
  }
};
template <class Element, int Zero, bool HighFirst>
struct WeightWord<Element, Nibbles<Zero, HighFirst>> {
  static_assert(Zero >= 0 && Zero < 16);
  using Math = Halves<Element>;
  using Pair = typename Math::Pair;
  static constexpr bool kNatural = false;  // pair p holds weights p and p + 4
  static constexpr int kPairs = 4;
  static CUTE_DEVICE void expand(uint32_t word, Pair (&to)[kPairs]) {
    CUTE_UNROLL
    for (int p = 0; p < kPairs; ++p) to[p] = Math::template from_nibbles<Zero>(word >> 4 * (HighFirst ? p ^ 1 : p));
  }
};

// Scaling says when the kernel applies scales: never, once at the end, after each chunk of 64 bytes
// of weights, or to each weight.
enum class Scaling { none, once, chunks, each };
template <class Scales, int Chunk>
struct ScalingOf {
  static constexpr Scaling value = Scaling::none;
};
template <int Rows, int Depth, class T, int Chunk>
struct ScalingOf<Grid<Rows, Depth, T>, Chunk> {
  static constexpr Scaling value = Depth == 0           ? Scaling::once
                                   : Depth % Chunk == 0 ? Scaling::chunks
                                                        : Scaling::each;
};

// Loads V floats from the shared memory of CTA `cta` of the cluster. `own` is the address of the
// same place in this CTA's shared memory.
template <int V>
CUTE_DEVICE void load_of_cluster(float const* own, int cta, float (&to)[V]) {
  uint32_t from;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(from)
               : "r"(cute::cast_smem_ptr_to_uint(own)), "r"(cta));
  if constexpr (V % 4 == 0) {
    CUTE_UNROLL
    for (int v = 0; v < V; v += 4)
      asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(to[v]), "=f"(to[v + 1]), "=f"(to[v + 2]), "=f"(to[v + 3])
                   : "r"(from + 4 * v)
                   : "memory");
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v)
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(to[v]) : "r"(from + 4 * v) : "memory");
  }
}

template <class Element, class TA, class W, int TileM, int TileN, int TileK, int Threads, int VectorA,
          int VectorB>
struct StreamGemm {
  using Word = WeightWord<Element, W>;
  using Math = Halves<Element>;
  using Pair = typename Math::Pair;
  // A segment of 16 bytes has kSegment weights, in kQuarters groups of 8. A warp reads kChunk
  // weights of a row at a time.
  static constexpr int kSegment = 8 * Word::kPairs, kQuarters = kSegment / 8, kChunk = 4 * kSegment;
  static constexpr int kBlocksM = TileM / 8;                // instructions of a warp along m
  static constexpr int kBlocksN = TileN % 32 == 0 ? 2 : 1;  // instructions of a warp along n
  static constexpr int kDown = TileN / (16 * kBlocksN);     // warps along n
  static constexpr int kDeep = Threads / 32 / kDown;        // kDeep warps share the sum over k
  static constexpr int kRounds = TileK / (kChunk * kDeep);  // chunks that a warp multiplies per tile
  static constexpr int kAhead = kRounds % 2 == 0 ? 2 : 1;   // a warp loads kAhead chunks in advance
  static constexpr int kLine = TileN + 4;  // this pitch of `part` avoids bank conflicts
  static constexpr int kTiles = TileM * TileK <= 8192 ? 4 : 2;  // tiles of A in shared memory
  static_assert(TileM % 8 == 0 && TileN % 16 == 0 && TileK == kRounds * kChunk * kDeep && kRounds > 0);
  static_assert(kDown * kDeep * 32 == Threads && VectorA <= 8);

  // The kernel copies A by cp.async if it need not convert or reorder the elements of A.
  static constexpr bool kAsync = Word::kNatural && VectorA == 8 && cute::is_same_v<TA, Element>;

  union alignas(128) Storage {
    uint4 a[kTiles][TileM * TileK / 8];  // other tiles arrive while the warps multiply one
    float part[kDeep][TileM][kLine];
  };

  template <class A, class B, class Scales, class Zeros>
  CUTE_DEVICE void run(A const& a, B const& weights, TileIndex tile, int first, int last,
                       Storage& storage, Scales const& scales, Zeros const& zeros) {
    storage_ = &storage;
    const int rows = cute::size<0>(weights), end = cute::min(int(cute::size<1>(weights)), last * TileK);
    const int row = tile.n * TileN + warp_down() * 16 * kBlocksN + lane() / 4;
    int next_k = first * TileK + warp_deep() * kChunk + lane() % 4 * kSegment;
    Weights next[kAhead];
    auto fetch = [&](Weights& to) {
      load(weights, row, rows, next_k, end, scales, zeros, to);
      next_k += kDeep * kChunk;
    };
    CUTE_UNROLL
    for (int i = 0; i < kAhead; ++i) fetch(next[i]);
    float results[kBlocksN][kBlocksM][4] = {};
    auto copy = [&](int step) {
      if (step < last) put(a, tile.m * TileM, step * TileK, storage.a[(step - first) % kTiles]);
      cute::cp_async_fence();
    };
    CUTE_UNROLL
    for (int i = 0; i < kTiles - 1; ++i) copy(first + i);
    for (int step = first; step < last; ++step) {
      cute::cp_async_wait<kTiles - 2>();
      __syncthreads();  // this tile of A has arrived, and all warps have read the previous tile
      copy(step + kTiles - 1);
      uint4 const* const now_a = storage.a[(step - first) % kTiles];
      for (int round = 0; round < kRounds; round += kAhead) {
        CUTE_UNROLL
        for (int i = 0; i < kAhead; ++i) {
          const Weights now = next[i];
          fetch(next[i]);
          multiply<Scales, Zeros>(
              now, now_a + ((round + i) * kDeep + warp_deep()) * kQuarters * kBlocksM * 32,
              results);
        }
      }
    }
    cute::cp_async_wait<0>();
    __syncthreads();  // `part` replaces the tiles of A
    CUTE_UNROLL
    for (int i = 0; i < kBlocksN; ++i) {
      CUTE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int n = (warp_down() * kBlocksN + i) * 16 + lane() / 4 + 8 * half;
        float scale = 1.0f;
        if constexpr (kScaling<Scales> == Scaling::once) {
          const int at = cute::min(tile.n * TileN + n, rows - 1);
          scale = to_float(scales(at, 0));
        }
        CUTE_UNROLL
        for (int j = 0; j < kBlocksM; ++j) {
          CUTE_UNROLL
          for (int e = 0; e < 2; ++e)
            storage.part[warp_deep()][8 * j + lane() % 4 * 2 + e][n] = results[i][j][2 * half + e] * scale;
        }
      }
    }
    __syncthreads();
  }

  // Calls f(results, m, n) for every V neighbouring results along n; V must divide 8. each() adds,
  // in a fixed order, the partial results of the warps that share k.
  template <int V, class F>
  CUTE_DEVICE void each(TileIndex tile, F&& f) const {
    constexpr int kRuns = TileN / V;
    for (int at = threadIdx.x; at < TileM * kRuns; at += Threads) {
      const int m = at / kRuns, n = at % kRuns * V;
      float c[V] = {};
      CUTE_UNROLL
      for (int deep = 0; deep < kDeep; ++deep) {
        CUTE_UNROLL
        for (int v = 0; v < V; ++v) c[v] += storage_->part[deep][m][n + v];
      }
      f(c, tile.m * TileM + m, tile.n * TileN + n);
    }
  }

  // Calls f() like each(), with the sums over all Ctas CTAs of the cluster, which compute parts of
  // the same tile. Exactly one CTA passes each result to f(). All threads of the cluster must call
  // each_of_cluster(), once and last.
  template <int V, int Ctas, class F>
  CUTE_DEVICE void each_of_cluster(TileIndex tile, F&& f) {
    for (int at = threadIdx.x; at < TileM * TileN; at += Threads) {  // adds the parts of the warps
      const int m = at / TileN, n = at % TileN;
      float sum = 0.0f;
      CUTE_UNROLL
      for (int deep = 0; deep < kDeep; ++deep) sum += storage_->part[deep][m][n];
      storage_->part[0][m][n] = sum;
    }
    cute::cluster_sync();
    constexpr int kRuns = TileN / V;
    const int first = int(cute::block_rank_in_cluster()) * Threads + int(threadIdx.x);
    for (int at = first; at < TileM * kRuns; at += Ctas * Threads) {
      const int m = at / kRuns, n = at % kRuns * V;
      float c[V] = {};
      CUTE_UNROLL
      for (int cta = 0; cta < Ctas; ++cta) {
        float part[V];
        load_of_cluster(&storage_->part[0][m][n], cta, part);
        CUTE_UNROLL
        for (int v = 0; v < V; ++v) c[v] += part[v];
      }
      f(c, tile.m * TileM + m, tile.n * TileN + n);
    }
    cute::cluster_sync();  // other CTAs may still read the shared memory of this CTA
  }

 private:
  template <class Scales>
  static constexpr Scaling kScaling = ScalingOf<Scales, kChunk>::value;

  // Weights is a thread's part of a chunk: 16 bytes of each row, with scales and zeros of the rows.
  struct Weights {
    uint32_t words[kBlocksN][2][4];
    float scale[kBlocksN][2], zero[kBlocksN][2];
  };

  static CUTE_DEVICE int lane() { return threadIdx.x % 32; }
  static CUTE_DEVICE int warp_down() { return threadIdx.x / 32 % kDown; }
  static CUTE_DEVICE int warp_deep() { return threadIdx.x / 32 / kDown; }

  // Beyond the last row, the thread loads the last row again; nothing uses the results. Beyond the
  // end of k, weights and elements of A are zero.
  template <class B, class Scales, class Zeros>
  static CUTE_DEVICE void load(B const& weights, int row, int rows, int k, int end, Scales const& scales,
                               Zeros const& zeros, Weights& to) {
    CUTE_UNROLL
    for (int i = 0; i < kBlocksN; ++i) {
      CUTE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int at = cute::min(row + 16 * i + 8 * half, rows - 1);
        auto& words = to.words[i][half];
        CUTE_UNROLL
        for (int q = 0; q < 4; ++q) words[q] = 0;
        to.scale[i][half] = to.zero[i][half] = 0.0f;
        if (k >= end) continue;
        load_segment(reinterpret_cast<char const*>(weights.data().get()) +
                         (at * int64_t(cute::stride<0>(weights)) * int(sizeof(W)) + int64_t(k / kSegment) * 16),
                     end - k, words);
        if constexpr (kScaling<Scales> >= Scaling::chunks) to.scale[i][half] = to_float(scales(at, k));
        if constexpr (!cute::is_same_v<Zeros, NoGrid>) to.zero[i][half] = to_float(zeros(at, k));
      }
    }
  }

  // Loads the 16 bytes at `from`. `left` is the number of weights up to the end of the row.
  static CUTE_DEVICE void load_segment(char const* from, int left, uint32_t (&words)[4]) {
    if constexpr (VectorB > 1) {
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                   : "l"(__cvta_generic_to_global(from)));
    } else {
      using Unit = cute::conditional_t<sizeof(W) == 2, uint16_t, uint8_t>;
      constexpr int kUnits = 16 / int(sizeof(Unit)), kInUnit = kSegment / kUnits;
      Unit units[kUnits];
      CUTE_UNROLL
      for (int u = 0; u < kUnits; ++u)
        units[u] = u * kInUnit < left ? reinterpret_cast<Unit const*>(from)[u] : Unit(0);
      memcpy(words, units, sizeof(units));
    }
  }

  // Copies a tile of A to shared memory in the order in which multiply() reads it. A block of 8
  // rows and 8 weights of each segment has 16 contiguous bytes for each lane.
  template <class A>
  static CUTE_DEVICE void put(A const& a, int first_row, int begin, uint4* to) {
    const int rows = cute::size<0>(a), depth = cute::size<1>(a);
    // The lanes of a warp write without bank conflicts, and together read whole sectors of 32 bytes.
    constexpr int kRows = 8 / kQuarters, kWarps = Threads / 32;  // kRows: rows of A that a warp copies at a time
    const int thread = lane() % 4, quarter = lane() / (4 * kRows), warp = threadIdx.x / 32;
    const int m8 = warp % kQuarters * kRows + lane() / 4 % kRows;
    static_assert(kWarps % kQuarters == 0);
#pragma unroll 4
    for (int part = warp / kQuarters; part < kBlocksM * (TileK / kChunk); part += kWarps / kQuarters) {
      const int block = part % kBlocksM, chunk = part / kBlocksM;
      const int m = 8 * block + m8, k = begin + kChunk * chunk + kSegment * thread + 8 * quarter;
      uint4& place = to[((chunk * kQuarters + quarter) * kBlocksM + block) * 32 + m8 * 4 + thread];
      const bool inside = first_row + m < rows && k < depth;
      if constexpr (kAsync)
        cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint4>::copy(
            *reinterpret_cast<uint4 const*>(&a(inside ? first_row + m : 0, inside ? k : 0)), place, inside);
      else
        place = eight_of(a, first_row + m, k);
    }
  }

  // Returns 8 neighbouring elements of a row of A, in the order in which WeightWord pairs the
  // weights. Elements beyond the edges of A are zero.
  template <class A>
  static CUTE_DEVICE uint4 eight_of(A const& a, int m, int k) {
    Pack<Element, 8> eight;
    CUTE_UNROLL
    for (int e = 0; e < 8; e += VectorA) {
      Pack<TA, VectorA> some = {};
      if (m < cute::size<0>(a) && k + e < cute::size<1>(a))
        some = *reinterpret_cast<Pack<TA, VectorA> const*>(&a(m, k + e));
      CUTE_UNROLL
      for (int j = 0; j < VectorA; ++j) {
        const int w = e + j;  // the element's index among the eight
        Element& to = eight.element[Word::kNatural ? w : w % 4 * 2 + w / 4];
        if constexpr (cute::is_same_v<TA, Element>)
          to = some.element[j];
        else
          to = Element(to_float(some.element[j]));
      }
    }
    uint4 packed;
    memcpy(&packed, &eight, sizeof(packed));
    return packed;
  }

  // Multiplies one chunk of weights, and keeps the number of registers low. If A has few rows, the
  // thread holds all sums of the chunk, but converted weights of only one quarter; otherwise it
  // holds the sums of one block and all weights.
  template <class Scales, class Zeros>
  static CUTE_DEVICE void multiply(Weights const& w, uint4 const* a, float (&results)[kBlocksN][kBlocksM][4]) {
    constexpr bool kChunks = kScaling<Scales> == Scaling::chunks, kFew = kBlocksM <= 2;
    constexpr int kOnce = kFew ? 1 : kQuarters, kSteps = kQuarters / kOnce;  // quarters converted together
    constexpr int kSums = kFew ? kBlocksM : 1;  // a thread holds the sums of kSums blocks
    float chunk[kBlocksN][kSums][4] = {};
    CUTE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      uint32_t rows[kBlocksN][2][4 * kOnce];
      CUTE_UNROLL
      for (int i = 0; i < kBlocksN; ++i) {
        CUTE_UNROLL
        for (int half = 0; half < 2; ++half) expand<Scales, Zeros>(w, i, half, step, rows[i][half]);
      }
      CUTE_UNROLL
      for (int j = 0; j < kBlocksM; ++j) {
        CUTE_UNROLL
        for (int once = 0; once < kOnce; ++once) {
          const uint4 x = a[((step * kOnce + once) * kBlocksM + j) * 32 + lane()];
          CUTE_UNROLL
          for (int i = 0; i < kBlocksN; ++i)
            fma(rows[i][0] + 4 * once, rows[i][1] + 4 * once, x, kChunks ? chunk[i][j % kSums] : results[i][j]);
        }
        if (kChunks && !kFew) add(w, j, chunk, results);
      }
    }
    CUTE_UNROLL
    for (int j = 0; kChunks && kFew && j < kBlocksM; ++j) add(w, j, chunk, results);
  }

  static CUTE_DEVICE void fma(uint32_t const* low, uint32_t const* high, uint4 x, float (&c)[4]) {
    using Op = typename MmaOf<Element>::Op;
    Op::fma(c[0], c[1], c[2], c[3], low[0], high[0], low[1], high[1], x.x, x.y, c[0], c[1], c[2], c[3]);
    Op::fma(c[0], c[1], c[2], c[3], low[2], high[2], low[3], high[3], x.z, x.w, c[0], c[1], c[2], c[3]);
  }

  // Multiplies the sums of a chunk by the scales, adds the products to the results, and resets the
  // sums to zero.
  template <int Sums>
  static CUTE_DEVICE void add(Weights const& w, int j, float (&chunk)[kBlocksN][Sums][4],
                              float (&results)[kBlocksN][kBlocksM][4]) {
    CUTE_UNROLL
    for (int i = 0; i < kBlocksN; ++i) {
      CUTE_UNROLL
      for (int e = 0; e < 4; ++e) {
        results[i][j][e] += w.scale[i][e / 2] * chunk[i][j % Sums][e];
        chunk[i][j % Sums][e] = 0.0f;
      }
    }
  }

  // Converts a segment of one row, or only its quarter number `step`, to pairs of elements.
  template <class Scales, class Zeros, int Pairs>
  static CUTE_DEVICE void expand(Weights const& w, int i, int half, int step, uint32_t (&to)[Pairs]) {
    constexpr int kWords = Pairs / Word::kPairs;
    CUTE_UNROLL
    for (int q = 0; q < kWords; ++q) {
      Pair pairs[Word::kPairs];
      Word::expand(w.words[i][half][step * kWords + q], pairs);
      CUTE_UNROLL
      for (int p = 0; p < Word::kPairs; ++p) {
        if constexpr (!cute::is_same_v<Zeros, NoGrid>)
          pairs[p] = __hsub2(pairs[p], Math::twice(w.zero[i][half]));
        if constexpr (kScaling<Scales> == Scaling::each) {
          const float2 both = Math::floats(pairs[p]);
          pairs[p] = Math::join(both.x * w.scale[i][half], both.y * w.scale[i][half]);
        }
        memcpy(&to[q * Word::kPairs + p], &pairs[p], sizeof(Pair));
      }
    }
  }

  Storage* storage_;
};

}  // namespace cutegen
