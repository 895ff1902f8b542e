// SPDX-License-Identifier: Apache-2.0
// This header has accumulators for reductions, and functions that combine the accumulators of
// several threads.
//
// Contract: a new accumulator holds the neutral element. An accumulator's add() adds one value,
// merge() adds another accumulator, and value() returns the result. Sum also adds up the rounding
// errors of its additions, so that sums of long rows stay accurate. PlainSum ignores rounding
// errors; use it for short rows and 16-bit results. ArgMax and ArgMin take a value and its index.
// If values are equal, ArgMax and ArgMin return the first index; a NaN wins against every number,
// as in PyTorch.
// - combine_warp combines the accumulators of each aligned group of `Width` lanes of a full warp.
// - combine_row combines the accumulators of each group of `Width` threads.
// - combine_column and combine_columns treat the CTA as a grid of threads (x, y), and combine the
//   accumulators of threads that have the same x.
//
// Example: Sum s; s.add(x); combine_row<256>(s, shared); float total = s.value();
#pragma once

#include <cutegen/math.cuh>

namespace cutegen {

#define CUTEGEN_FN __device__ __forceinline__

struct Sum {
  float total = 0.0f, error = 0.0f;  // `error` is the sum of the rounding errors so far
  CUTEGEN_FN void add(float x) {
    float t = total + x;
    float back = t - total;
    error += (total - (t - back)) + (x - back);
    total = t;
  }
  // Adds the V values to each other without compensation, and then adds their sum with
  // compensation. V is small, so the error of their sum does not grow with the length of the row.
  template <int V>
  CUTEGEN_FN void add(float const (&x)[V]) {
    float few = x[0];
#pragma unroll
    for (int v = 1; v < V; ++v) few += x[v];
    add(few);
  }
  CUTEGEN_FN void merge(Sum const& other) {
    add(other.total);
    error += other.error;
  }
  CUTEGEN_FN void scale(float factor) {
    total *= factor;
    error *= factor;
  }
  CUTEGEN_FN float value() const { return is_finite(total) ? total + error : total; }
};

struct PlainSum {
  float total = 0.0f;
  CUTEGEN_FN void add(float x) { total += x; }
  template <int V>
  CUTEGEN_FN void add(float const (&x)[V]) {
#pragma unroll
    for (int v = 0; v < V; ++v) total += x[v];
  }
  CUTEGEN_FN void merge(PlainSum const& other) { total += other.total; }
  CUTEGEN_FN void scale(float factor) { total *= factor; }
  CUTEGEN_FN float value() const { return total; }
};

// Total is the sum of integers or Booleans, which wraps modulo 2^64, as in PyTorch.
struct Total {
  unsigned low = 0, high = 0;  // two 32-bit words, because shuffle_xor() moves 32-bit words
  CUTEGEN_FN void add(int64_t x) {
    const uint64_t sum = (uint64_t(high) << 32 | low) + uint64_t(x);
    low = unsigned(sum), high = unsigned(sum >> 32);
  }
  CUTEGEN_FN void merge(Total const& other) { add(other.value()); }
  CUTEGEN_FN int64_t value() const { return int64_t(uint64_t(high) << 32 | low); }
};

// BestInteger holds the largest (Sign 1) or smallest (Sign -1) integer as two 32-bit words.
template <int Sign>
struct BestInteger {
  unsigned low = 0, high = 0;
  bool any = false;
  CUTEGEN_FN void add(int64_t x) {
    if (any && (Sign > 0 ? x <= value() : x >= value())) return;
    low = unsigned(uint64_t(x)), high = unsigned(uint64_t(x) >> 32), any = true;
  }
  CUTEGEN_FN void merge(BestInteger const& other) {
    if (other.any) add(other.value());
  }
  CUTEGEN_FN int64_t value() const { return int64_t(uint64_t(high) << 32 | low); }
};
using MaxInteger = BestInteger<1>;
using MinInteger = BestInteger<-1>;

struct Product {
  float total = 1.0f;
  CUTEGEN_FN void add(float x) { total *= x; }
  CUTEGEN_FN void merge(Product const& other) { total *= other.total; }
  CUTEGEN_FN float value() const { return total; }
};

struct Max {
  float best = -infinity();
  CUTEGEN_FN void add(float x) { best = maximum(x, best); }
  CUTEGEN_FN void merge(Max const& other) { add(other.best); }
  CUTEGEN_FN float value() const { return best; }
};

struct Min {
  float best = infinity();
  CUTEGEN_FN void add(float x) { best = minimum(x, best); }
  CUTEGEN_FN void merge(Min const& other) { add(other.best); }
  CUTEGEN_FN float value() const { return best; }
};

// ArgMax finds the index of the largest value.
struct ArgMax {
  float best = -infinity();
  unsigned at = 0xffffffffu;
  CUTEGEN_FN void add(float x, unsigned i) {
    bool nan = is_nan(x), had = is_nan(best);
    bool wins = nan != had ? nan : (nan || x == best) ? i < at : x > best;
    best = wins ? x : best;
    at = wins ? i : at;
  }
  // Adds V neighbours from index `first` on. All indices in earlier calls must be smaller.
  template <int V>
  CUTEGEN_FN void add(float const (&x)[V], unsigned first) {
    float most = x[0];
#pragma unroll
    for (int v = 1; v < V; ++v) most = maximum(x[v], most);
    if (most <= best && at != 0xffffffffu) return;
    if (is_nan(most)) {
#pragma unroll
      for (int v = 0; v < V; ++v) add(x[v], first + v);
    } else if (!is_nan(best)) {
      best = most;
#pragma unroll
      for (int v = V - 1; v >= 0; --v) at = x[v] == most ? first + v : at;
    }
  }
  CUTEGEN_FN void merge(ArgMax const& other) { add(other.best, other.at); }
  CUTEGEN_FN int64_t value() const { return at; }
};

// ArgMin finds the index of the smallest value, which is the largest value after negation.
struct ArgMin {
  ArgMax negated;
  CUTEGEN_FN void add(float x, unsigned i) { negated.add(-x, i); }
  template <int V>
  CUTEGEN_FN void add(float const (&x)[V], unsigned first) {
    float turned[V];
#pragma unroll
    for (int v = 0; v < V; ++v) turned[v] = -x[v];
    negated.add(turned, first);
  }
  CUTEGEN_FN void merge(ArgMin const& other) { negated.merge(other.negated); }
  CUTEGEN_FN int64_t value() const { return negated.value(); }
};

// Computes max(x) and sum(exp(x - max(x))) in one pass, and scales the sum down whenever the
// maximum grows. The relative error of flushed_exp() grows for arguments far below zero, but such
// arguments contribute little to the sum.
template <class Total>
struct MaxSumExpOf {
  Max max;
  Total sum;
  CUTEGEN_FN void rescale(float from, float to) {
    if (from != to) sum.scale(flushed_exp(from - to));  // the maximum seldom grows
  }
  template <int V>
  CUTEGEN_FN void add(float const (&x)[V]) {  // rescales at most once for V values
    float before = max.best;
#pragma unroll
    for (int v = 0; v < V; ++v) max.add(x[v]);
    rescale(before, max.best);
    // If all values so far are -inf, a shift of 0 makes all terms zero instead of NaN.
    float shift = max.best == -infinity() ? 0.0f : max.best;
    float terms[V];
#pragma unroll
    for (int v = 0; v < V; ++v) terms[v] = flushed_exp(minus(x[v], shift));
    sum.add(terms);
  }
  CUTEGEN_FN void add(float x) {
    float one[1] = {x};
    add(one);
  }
  CUTEGEN_FN void merge(MaxSumExpOf other) {
    float before = max.best;
    max.merge(other.max);
    rescale(before, max.best);
    other.rescale(other.max.best, max.best);
    sum.merge(other.sum);
  }
  // Returns sum(exp(x - shift)), where the shift is the maximum, or 0 if the maximum is infinite.
  CUTEGEN_FN float sum_of_finite_shift() const {
    return max.best == infinity() ? infinity() : sum.value();
  }
};

using MaxSumExp = MaxSumExpOf<Sum>;

// Computes sum(x) and sum((x - mean(x))^2) in one pass. The caller of Moments adds x - shift, and
// the shift is one element of the row. The shift may be far from the mean, because the sum of
// squares has twice float's precision and stays accurate after cancellation.
struct Moments {
  Sum sum, squares;
  CUTEGEN_FN void add(float shifted) {
    sum.add(shifted);
    float square = shifted * shifted;
    squares.add(square);
    squares.error += fmaf(shifted, shifted, -square);
  }
  CUTEGEN_FN void merge(Moments const& other) {
    sum.merge(other.sum);
    squares.merge(other.squares);
  }
  static CUTEGEN_FN double exact(Sum const& s) { return double(s.total) + double(s.error); }
  // total() returns sum(x) of `count` elements, and about_mean() returns sum((x - mean(x))^2).
  CUTEGEN_FN float total(double count, float shift) const {
    return float(exact(sum) + count * double(shift));
  }
  CUTEGEN_FN float about_mean(double count) const {
    double left = exact(squares) - exact(sum) * exact(sum) / count;
    return left < 0.0 ? 0.0f : float(left);
  }
};

// Returns the accumulator of lane `lane ^ mask`. An accumulator must be a struct of 32-bit words.
template <class Acc>
CUTEGEN_FN Acc shuffle_xor(Acc const& mine, int mask) {
  constexpr int kWords = sizeof(Acc) / sizeof(unsigned);
  unsigned words[kWords];
  memcpy(words, &mine, sizeof(Acc));
#pragma unroll
  for (int w = 0; w < kWords; ++w) words[w] = __shfl_xor_sync(0xffffffffu, words[w], mask);
  Acc theirs;
  memcpy(&theirs, words, sizeof(Acc));
  return theirs;
}

// Merges the accumulators of each aligned group of Width lanes. Every lane receives its group's
// total.
template <int Width, class Acc>
CUTEGEN_FN void combine_warp(Acc& acc) {
#pragma unroll
  for (int mask = Width / 2; mask > 0; mask /= 2) acc.merge(shuffle_xor(acc, mask));
}

// Returns the smallest power of 2 that is at least n.
CUTEGEN_FN constexpr int next_power(int n) { return n <= 1 ? 1 : 2 * next_power((n + 1) / 2); }

// Merges the accumulators of each group of Width threads. Every thread receives its group's total.
// If Width is above 32, it must be a multiple of 32, and `shared` must have room for one
// accumulator for each warp of the CTA. If Last is true, no later call may use `shared`.
template <int Width, bool Last = false, class Acc>
CUTEGEN_FN void combine_row(Acc& acc, float* shared) {
  combine_warp<(Width < 32 ? Width : 32)>(acc);
  if constexpr (Width > 32) {
    constexpr int kWarps = Width / 32;
    Acc* scratch = reinterpret_cast<Acc*>(shared);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) scratch[warp] = acc;
    __syncthreads();
    constexpr int kLanes = next_power(kWarps);
    const int theirs = lane % kLanes;
    acc = kLanes == kWarps || theirs < kWarps ? scratch[(warp / kWarps) * kWarps + theirs] : Acc{};
    combine_warp<kLanes>(acc);
    if constexpr (!Last) __syncthreads();  // after this, threads may write `shared` again
  }
}

// Treats the CTA as a grid of Columns x Rows threads (x, y), where x varies fastest. Each thread
// receives the total of all threads that have the same x. `shared` must have room for Columns *
// Rows accumulators.
template <int Columns, int Rows, class Acc>
CUTEGEN_FN void combine_column(Acc& acc, float* shared) {
  if constexpr (Rows > 1) {
    Acc* scratch = reinterpret_cast<Acc*>(shared);
    int x = threadIdx.x % Columns, y = threadIdx.x / Columns;
    scratch[y * Columns + x] = acc;
    __syncthreads();
#pragma unroll
    for (int half = Rows / 2; half > 0; half /= 2) {
      if (y < half) scratch[y * Columns + x].merge(scratch[(y + half) * Columns + x]);
      __syncthreads();
    }
    acc = scratch[x];
    __syncthreads();
  }
}

// ColumnGroups has the constants of combine_columns. First, combine_columns uses shuffles to merge
// the accumulators of a warp's threads that have the same x. Then combine_columns merges groups of
// kSide threads through shared memory, kAtOnce of each thread's V accumulators at a time. kFloats
// is the required size of shared memory.
template <int Columns, int Threads, int V, int Words>
struct ColumnGroups {
  static constexpr int kSide = Columns < 32 ? 32 : Columns, kGroups = Threads / kSide;
  static constexpr int kMost = 4096;  // limit of shared memory, in 32-bit words
  static constexpr int at_once(int few) {
    return few > 1 && kGroups * Columns * few * Words > kMost ? at_once(few / 2) : few;
  }
  static constexpr int kAtOnce = at_once(V);
  static constexpr int kFloats = kGroups > 1 ? kGroups * Columns * kAtOnce * Words : 1;
};

// Treats the CTA as a grid of Columns x (Threads / Columns) threads (x, y), where x varies fastest.
// Each thread receives the totals of the V accumulators of all threads that have the same x.
// Columns, Threads and V are powers of 2. `shared` must have room for ColumnGroups<Columns,
// Threads, V, Words>::kFloats floats, where Words is the size of an accumulator in 32-bit words.
template <int Columns, int Threads, class Acc, int V>
CUTEGEN_FN void combine_columns(Acc (&acc)[V], float* shared) {
  using Groups = ColumnGroups<Columns, Threads, V, sizeof(Acc) / sizeof(float)>;
  if constexpr (Columns < 32) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
#pragma unroll
      for (int mask = 16; mask >= Columns; mask /= 2) acc[v].merge(shuffle_xor(acc[v], mask));
    }
  }
  if constexpr (Groups::kGroups > 1) {
    constexpr int kAtOnce = Groups::kAtOnce, kSlots = Columns * kAtOnce;
    Acc* scratch = reinterpret_cast<Acc*>(shared);
    const int x = threadIdx.x % Columns, group = threadIdx.x / Groups::kSide;
#pragma unroll
    for (int from = 0; from < V; from += kAtOnce) {
      if (threadIdx.x % Groups::kSide < Columns) {
#pragma unroll
        for (int v = 0; v < kAtOnce; ++v) scratch[(group * kAtOnce + v) * Columns + x] = acc[from + v];
      }
      __syncthreads();
      for (int slot = threadIdx.x; slot < kSlots; slot += Threads) {
        Acc total = scratch[slot];
#pragma unroll
        for (int other = 1; other < Groups::kGroups; ++other) total.merge(scratch[other * kSlots + slot]);
        scratch[slot] = total;
      }
      __syncthreads();
#pragma unroll
      for (int v = 0; v < kAtOnce; ++v) acc[from + v] = scratch[v * Columns + x];
      __syncthreads();  // after this, threads may write `shared` again
    }
  }
}

#undef CUTEGEN_FN

}  // namespace cutegen
