// SPDX-License-Identifier: Apache-2.0
// Splits float32 matrices into pairs of half-precision matrices, high and low, for products on
// tensor cores (cutegen/gemm_wgmma_pairs.cuh).
//
// Contract: the split multiplies an operand by the power of two that brings its largest magnitude
// into [2^14, 2^15). For each scaled value x, high = half(x) and low = half(x - high). An operand
// is a tensor with the axes (row, depth, batch). The pairs are stored in the operand's order:
// contiguous along the depth if AlongDepth is true, otherwise along the rows. Lines are padded to
// multiples of 8 elements. The high part of batch b is matrix 2 * b, the low part matrix 2 * b + 1.
//
// Two kernels with the same grid of CTAs of 256 threads split both operands of a product. The
// buffer `control` has kControl + 2 * gridDim.x words: a flag, two exponents, and the largest
// magnitudes that the CTAs of the first kernel found. After the second kernel, the flag is 0 if the
// pairs are as accurate as float32. Operand i was multiplied by 2 to the power of exponent i.
//
// The pairs of small values may be inaccurate: low parts below 2^-14 are subnormal, so that a
// pair's error may be 2^-25 in scaled units. Small values matter if no large value stands beside
// them in a sum, or if the other operand's values are large wherever this operand's values are
// small. Therefore, the kernel checks runs of 64 elements along the depth, and runs of 16 or 32
// elements along the rows, except runs shorter than 8 at an edge. The kernel sets the flag if the
// largest magnitude of a run is below 4 (2^-13 of the operand's largest magnitude), but not zero.
// If the flag is not set, a pair's error is at most 2^-27 of the largest value of each of its two
// runs. Infinities, NaN and operands whose largest magnitude is below 2^-112 set the flag, too.
//
// In a sum of few terms, a tiny value matters if the other operand has a large value there and
// small values elsewhere, even if large values stand beside the tiny value. Therefore, if the depth
// is at most 128, three nonzero values below 2^-4 (2^-19 of the operand's largest magnitude) in one
// block also set the flag. Of a million normally distributed values, about seven are that small. At
// larger depths, sums have enough terms of other magnitudes.
//
// A product in tf32 needs only high parts, because half precision has as many significand bits as
// tf32. With Parts 1, split_pairs() stores batch b in matrix b, and the scales are 1, so that no
// kernel has to find the largest magnitudes. The flag is set if a magnitude is above half
// precision's largest number, or if a run's largest magnitude is below 2^-13, because rounding
// errors may then be above 2^-12 of this magnitude. At a depth of at most 128, three nonzero values
// below 2^-17 in one block set the flag, too.
//
// Example: find_largest<4, true>(rows, 0, control);           // kernel 1
//          SplitScales scales(control);                       // kernel 2
//          split_pairs<4, true>(rows, 0, scales, pairs, control);
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/vec.cuh>

namespace cutegen {

constexpr int kControl = 3;  // number of words of `control` before the magnitudes
constexpr int kSplitThreads = 256;
constexpr int kSplitDepth = 64;
constexpr int kShortRun = 8;
constexpr int kShallow = 128;  // a sum over at most this depth has few terms
constexpr int kMostTiny = 2;   // limit of tiny values in a block, at depths up to kShallow

// Returns 2^exponent; the exponent is in [-126, 127].
CUTE_DEVICE float power_of_two(int exponent) {
  return __uint_as_float(unsigned(127 + exponent) << 23);
}

// A warp processes a block of kRows x 64 elements. Each thread has kPacks packs of four elements
// along the contiguous axis.
template <bool AlongDepth>
struct SplitBlock {
  static constexpr int kRows = AlongDepth ? 16 : 32, kPacks = AlongDepth ? 8 : 16;
  static CUTE_DEVICE int lane() { return threadIdx.x % 32; }
  static CUTE_DEVICE int row(int i) { return AlongDepth ? 2 * i + lane() / 16 : lane() % 8 * 4; }
  static CUTE_DEVICE int depth(int i) { return AlongDepth ? lane() % 16 * 4 : lane() / 8 + 4 * i; }
};

// Calls f(values, row, depth, batch) for each block of an operand that this warp processes: `row`
// and `depth` are the coordinates of the block's first element. Elements outside the operand are
// zero.
template <int Vector, bool AlongDepth, class Global, class F>
CUTE_DEVICE void each_block(Global const& global, F&& f) {
  using Block = SplitBlock<AlongDepth>;
  const int rows = cute::size<0>(global), depths = cute::size<1>(global);
  const unsigned down = cute::ceil_div(rows, Block::kRows),
                 deep = cute::ceil_div(depths, kSplitDepth);
  const unsigned blocks = down * deep * unsigned(int(cute::size<2>(global)));
  const unsigned warp = blockIdx.x * (kSplitThreads / 32) + threadIdx.x / 32;
  for (unsigned at = warp; at < blocks; at += gridDim.x * (kSplitThreads / 32)) {
    // Neighbouring warps read neighbouring addresses.
    const unsigned along = AlongDepth ? deep : down, across = AlongDepth ? down : deep;
    const int first = at % along, second = at / along % across, batch = at / along / across;
    const int row = (AlongDepth ? second : first) * Block::kRows,
              depth = (AlongDepth ? first : second) * kSplitDepth;
    float x[Block::kPacks][4];
    CUTE_UNROLL
    for (int i = 0; i < Block::kPacks; ++i) {
      const int r = row + Block::row(i), k = depth + Block::depth(i);
      auto const* from = &global(r, k, batch);
      const int64_t step =
          AlongDepth ? int64_t(cute::stride<1>(global)) : int64_t(cute::stride<0>(global));
      if constexpr (Vector >= 4) {
        Pack<float, 4> pack{};
        if (r < rows && k < depths) pack = *reinterpret_cast<Pack<float, 4> const*>(from);
        CUTE_UNROLL
        for (int v = 0; v < 4; ++v) x[i][v] = pack.element[v];
      } else {
        CUTE_UNROLL
        for (int v = 0; v < 4; ++v)
          x[i][v] = r + (AlongDepth ? 0 : v) < rows && k + (AlongDepth ? v : 0) < depths
                        ? from[v * step]
                        : 0.0f;
      }
    }
    f(x, row, depth, batch);
  }
}

// Returns the largest value of all threads of the CTA.
CUTE_DEVICE uint32_t largest_in_cta(uint32_t value) {
  __shared__ uint32_t warps[kSplitThreads / 32];
  CUTE_UNROLL
  for (int step = 16; step > 0; step /= 2)
    value = cute::max(value, __shfl_xor_sync(0xffffffffu, value, step));
  __syncthreads();  // all threads have read the words of an earlier call
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  CUTE_UNROLL
  for (int i = 0; i < kSplitThreads / 32; ++i) value = cute::max(value, warps[i]);
  return value;
}

// Returns the bits of a magnitude. Read as integers, these bits have the order of the magnitudes, and
// NaN is the largest.
CUTE_DEVICE uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Finds the largest magnitude of this CTA's blocks of operand `which` (0 or 1). The first operand's
// call clears the flag.
template <int Vector, bool AlongDepth, class Global>
CUTE_DEVICE void find_largest(Global const& global, int which, uint32_t* control) {
  uint32_t most = 0;
  each_block<Vector, AlongDepth>(global, [&](auto const& x, int, int, int) {
    CUTE_UNROLL
    for (int i = 0; i < SplitBlock<AlongDepth>::kPacks; ++i) {
      CUTE_UNROLL
      for (int v = 0; v < 4; ++v) most = cute::max(most, magnitude(x[i][v]));
    }
  });
  most = largest_in_cta(most);
  if (threadIdx.x == 0) control[kControl + which * gridDim.x + blockIdx.x] = most;
  if (threadIdx.x == 0 && blockIdx.x == 0 && which == 0) control[0] = 0;
}

// SplitScales holds the exponents of the powers of two that scale the two operands.
struct SplitScales {
  int exponent[2] = {};
  bool fits = true;  // whether a scale brings each operand into half precision's range

  SplitScales() = default;  // both scales are 1
  CUTE_DEVICE explicit SplitScales(uint32_t* control) {
    CUTE_UNROLL
    for (int which = 0; which < 2; ++which) {
      uint32_t most = 0;
      for (unsigned i = threadIdx.x; i < gridDim.x; i += kSplitThreads)
        most = cute::max(most, control[kControl + which * gridDim.x + i]);
      most = largest_in_cta(most);
      const int field = int(most >> 23);
      // A scale above 2^126 would need two factors.
      const bool own = most == 0 || (field >= 15 && field < 255);
      exponent[which] = most == 0 || !own ? 0 : 141 - field;
      fits = fits && own;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      control[1] = uint32_t(exponent[0]), control[2] = uint32_t(exponent[1]);
      if (!fits) atomicOr(control, 1u);
    }
  }
};

// Combines each maximum over the lanes whose numbers differ only in the bits from First to Last /
// 2. Returns whether a combined maximum is below `least`, but not zero. All threads of a warp must
// call any_small().
template <int First, int Last, int Size>
CUTE_DEVICE bool any_small(float (&most)[Size], float least) {
  bool small = false;
  CUTE_UNROLL
  for (int i = 0; i < Size; ++i) {
    CUTE_UNROLL
    for (int step = First; step < Last; step *= 2)
      most[i] = fmaxf(most[i], __shfl_xor_sync(0xffffffffu, most[i], step));
    small = small || (most[i] > 0 && most[i] < least);
  }
  return small;
}

// Splits this CTA's blocks of operand `which`, and sets the flag if the parts are too inaccurate.
// Does nothing if the product will not use the pairs.
template <int Vector, bool AlongDepth, int Parts = 2, class Global>
CUTE_DEVICE void split_pairs(Global const& global, int which, SplitScales const& scales,
                             cute::half_t* pairs, uint32_t* control) {
  using Block = SplitBlock<AlongDepth>;
  constexpr float kLeast = Parts == 2 ? 4.0f : 0x1p-13f, kMost = 65504.0f;
  constexpr float kTiny = Parts == 2 ? 0x1p-4f : 0x1p-17f;
  if (!scales.fits) return;
  const float scale = power_of_two(scales.exponent[which]);
  const int rows = cute::size<0>(global), depths = cute::size<1>(global);
  const int64_t line = cute::ceil_div(AlongDepth ? depths : rows, 8) * int64_t(8);
  const int64_t matrix = line * (AlongDepth ? rows : depths);
  bool wrong = false;
  each_block<Vector, AlongDepth>(global, [&](auto const& x, int row, int depth, int batch) {
    // across[v] is the largest magnitude of element v of all packs. within[i] is the largest
    // magnitude in pack i.
    float across[4] = {}, within[Block::kPacks] = {};
    unsigned tiny = 0;
    CUTE_UNROLL
    for (int i = 0; i < Block::kPacks; ++i) {
      Pack<cute::half_t, 4> high, low;
      CUTE_UNROLL
      for (int v = 0; v < 4; ++v) {
        const float scaled = x[i][v] * scale;
        high.element[v] = cute::half_t(scaled);
        low.element[v] = cute::half_t(scaled - float(high.element[v]));
        // A value counts as nonzero even if the scaled value rounds to zero.
        const float size = x[i][v] != 0 ? fmaxf(fabsf(scaled), 1e-30f) : 0.0f;
        if (Parts == 1 && !(fabsf(scaled) <= kMost)) wrong = true;  // also NaN
        tiny += size > 0 && size < kTiny;
        across[v] = fmaxf(across[v], size);
        within[i] = fmaxf(within[i], size);
      }
      const int r = row + Block::row(i), k = depth + Block::depth(i);
      if (r >= rows || k >= depths) continue;
      cute::half_t* to = pairs + Parts * batch * matrix + (AlongDepth ? r : k) * line +
                         (AlongDepth ? k : r);
      write_pack(high, to);
      if constexpr (Parts == 2) write_pack(low, to + matrix);
    }
    // kLanes neighbouring lanes hold packs of one line. Short runs at an edge do not set the flag.
    constexpr int kLanes = AlongDepth ? 16 : 8;
    const bool tall = rows - row >= cute::min(rows, kShortRun),
               deep = depths - depth >= cute::min(depths, kShortRun);
    const bool small_across = any_small<kLanes, 32>(across, kLeast),
               small_within = any_small<1, kLanes>(within, kLeast);
    if (depths <= kShallow) wrong |= __reduce_add_sync(0xffffffffu, tiny) > kMostTiny;
    wrong |= AlongDepth ? (tall && small_across) || (deep && small_within)
                        : (deep && small_across) || (tall && small_within);
  });
  if (__any_sync(0xffffffffu, wrong) && threadIdx.x % 32 == 0) atomicOr(control, 1u);
}

}  // namespace cutegen
