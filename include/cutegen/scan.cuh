// SPDX-License-Identifier: Apache-2.0
// Computes cumulative sums, products, maxima and minima of a tile that the threads of a CTA hold.
//
// Contract: an operation Op (Add, Multiply, Largest, Smallest, ...) has a type Value, a neutral
// element and combine(). If Value is not float, from(x, position) converts an element to a Value,
// and result() converts a Value to a result. Each thread holds x[Items][V], its part of the tile.
// For scan_row, `Width` threads (a power of two up to 32, or all threads of the CTA) hold the next
// Items * Width * V elements of a row. The index in the vector varies fastest in the order of the
// elements, then the thread, then the item. For scan_column, the CTA has Rows teams of Columns
// threads. Each thread of scan_column has V columns and Items positions along the scanned axis.
// Each team has the positions that follow the previous team's positions. scan_row and scan_column
// start from `carry`, replace x by the results, and set `carry` to the value after the tile. With
// `Exclusive`, a result excludes the element itself. All threads of the CTA must call scan_row or
// scan_column. If Width is at most 32, only all threads of a warp must call scan_row. Consecutive
// calls must alternate between two buffers for `shared`.
//
// Example: float carry = 0; scan_row<Add, 256, false>(x, carry, shared + (tile % 2) * 32);
#pragma once

#include <cutegen/math.cuh>

namespace cutegen {

#define CUTEGEN_FN __device__ __forceinline__

struct Add {
  using Value = float;
  static CUTEGEN_FN float neutral() { return 0.0f; }
  static CUTEGEN_FN float combine(float a, float b) { return a + b; }
};

struct Multiply {
  using Value = float;
  static CUTEGEN_FN float neutral() { return 1.0f; }
  static CUTEGEN_FN float combine(float a, float b) { return a * b; }
};

struct Largest {
  using Value = float;
  static CUTEGEN_FN float neutral() { return -infinity(); }
  static CUTEGEN_FN float combine(float a, float b) { return maximum(a, b); }
};

struct Smallest {
  using Value = float;
  static CUTEGEN_FN float neutral() { return infinity(); }
  static CUTEGEN_FN float combine(float a, float b) { return minimum(a, b); }
};

struct Integers {
  using Value = int64_t;
  static CUTEGEN_FN Value from(int64_t x, int64_t) { return x; }
  static CUTEGEN_FN int64_t result(Value x) { return x; }
};

struct AddIntegers : Integers {
  static CUTEGEN_FN Value neutral() { return 0; }
  static CUTEGEN_FN Value combine(Value a, Value b) { return a + b; }
};

struct MultiplyIntegers : Integers {
  static CUTEGEN_FN Value neutral() { return 1; }
  static CUTEGEN_FN Value combine(Value a, Value b) { return a * b; }
};

struct LargestInteger : Integers {
  static CUTEGEN_FN Value neutral() { return -0x7fffffffffffffffll - 1; }
  static CUTEGEN_FN Value combine(Value a, Value b) { return a > b ? a : b; }
};

struct SmallestInteger : Integers {
  static CUTEGEN_FN Value neutral() { return 0x7fffffffffffffffll; }
  static CUTEGEN_FN Value combine(Value a, Value b) { return a < b ? a : b; }
};

// LogSum is the operation for the logarithm of a sum of exponentials. LogSum::Value holds the
// largest exponent and the sum of exp(exponent - largest).
struct LogSum {
  struct Value {
    float most, sum;
  };
  static CUTEGEN_FN Value neutral() { return {-infinity(), 0.0f}; }
  static CUTEGEN_FN float scaled(Value x, float most) {
    return x.most == most || x.sum == 0.0f ? x.sum : x.sum * expf(x.most - most);
  }
  static CUTEGEN_FN Value combine(Value a, Value b) {
    const float most = maximum(a.most, b.most);
    return {most, scaled(a, most) + scaled(b, most)};
  }
  static CUTEGEN_FN Value from(float x, int64_t) { return {x, 1.0f}; }
  static CUTEGEN_FN float result(Value x) { return x.most + logf(x.sum); }
};

// Placed finds the position of the largest value (Sign 1) or of the smallest value (Sign -1). If
// values are equal, Placed keeps the last position. A NaN wins against every number.
template <int Sign>
struct Placed {
  struct Value {
    float value;
    int place;
  };
  static CUTEGEN_FN Value neutral() { return {0.0f, -1}; }
  static CUTEGEN_FN bool behind(Value a, Value b) {  // returns whether b wins against a
    if (a.place < 0 || b.place < 0) return a.place < 0;
    if (is_nan(a.value) || is_nan(b.value))
      return is_nan(b.value) && (!is_nan(a.value) || b.place > a.place);
    if (a.value == b.value) return b.place > a.place;
    return Sign > 0 ? b.value > a.value : b.value < a.value;
  }
  static CUTEGEN_FN Value combine(Value a, Value b) { return behind(a, b) ? b : a; }
  static CUTEGEN_FN Value from(float x, int64_t place) { return {x, int(place)}; }
  static CUTEGEN_FN int64_t result(Value x) { return x.place; }
};
using LargestPlace = Placed<1>;
using SmallestPlace = Placed<-1>;

// Applies `shuffle`, which moves one 32-bit word between lanes, to each word of x.
template <class T, class Shuffle>
CUTEGEN_FN T by_words(T x, Shuffle&& shuffle) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return shuffle(x);
  } else {
    static_assert(sizeof(T) == 8);
    union {
      T value;
      unsigned words[2];
    } both = {x};
    both.words[0] = shuffle(both.words[0]);
    both.words[1] = shuffle(both.words[1]);
    return both.value;
  }
}

// In each aligned group of Width lanes, lane i returns the combined values of lanes 0 to i of the
// group.
template <class Op, int Width>
CUTEGEN_FN typename Op::Value scan_lanes(typename Op::Value x) {
  const int lane = threadIdx.x % Width;
#pragma unroll
  for (int apart = 1; apart < Width; apart *= 2) {
    const auto before =
        by_words(x, [&](auto word) { return __shfl_up_sync(0xffffffffu, word, apart, Width); });
    if (lane >= apart) x = Op::combine(before, x);
  }
  return x;
}

// Combines each cumulative result x[i] with `before`, the total of the preceding elements. If
// Exclusive is true, from_before() also shifts the results by one position, so that x[0] becomes
// `before`.
template <class Op, bool Exclusive, int N>
CUTEGEN_FN void from_before(typename Op::Value before, typename Op::Value (&x)[N]) {
#pragma unroll
  for (int i = N - 1; i >= 0; --i) {
    if (Exclusive) x[i] = i == 0 ? before : Op::combine(before, x[i == 0 ? 0 : i - 1]);
    else x[i] = Op::combine(before, x[i]);
  }
}

template <class Op, int N>
CUTEGEN_FN void scan_own(typename Op::Value (&x)[N]) {
#pragma unroll
  for (int i = 1; i < N; ++i) x[i] = Op::combine(x[i - 1], x[i]);
}

// For scan_row(), `shared` must have room for 32 values. scan_row() does not use `shared` if Width
// is at most 32.
template <class Op, int Width, bool Exclusive, int Items, int V>
CUTEGEN_FN void scan_row(typename Op::Value (&x)[Items][V], typename Op::Value& carry,
                         typename Op::Value* shared) {
  using Value = typename Op::Value;
  constexpr int kLanes = Width < 32 ? Width : 32, kWarps = Width / kLanes;
  static_assert(kWarps == 1 || Items * kWarps <= 32, "a warp combines the totals of all warps");
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / 32;
  // For item i, before[i] combines all lanes before this lane, and total[i] all lanes of the group.
  Value before[Items], total[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    scan_own<Op>(x[i]);
    const Value here = scan_lanes<Op, kLanes>(x[i][V - 1]);
    const Value up =
        by_words(here, [&](auto word) { return __shfl_up_sync(0xffffffffu, word, 1, kLanes); });
    before[i] = lane == 0 ? Op::neutral() : up;
    total[i] = by_words(
        here, [&](auto word) { return __shfl_sync(0xffffffffu, word, kLanes - 1, kLanes); });
  }
  if constexpr (kWarps == 1) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      from_before<Op, Exclusive>(Op::combine(carry, before[i]), x[i]);
      carry = Op::combine(carry, total[i]);
    }
  } else {
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < Items; ++i) shared[i * kWarps + warp] = total[i];
    }
    __syncthreads();
    const Value all = scan_lanes<Op, 32>(lane < Items * kWarps ? shared[lane] : Op::neutral());
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int at = i * kWarps + warp;
      const Value others = by_words(
          all, [&](auto word) { return __shfl_sync(0xffffffffu, word, at == 0 ? 0 : at - 1); });
      const Value own = at == 0 ? before[i] : Op::combine(others, before[i]);
      from_before<Op, Exclusive>(Op::combine(carry, own), x[i]);
    }
    carry = Op::combine(
        carry, by_words(all, [&](auto word) { return __shfl_sync(0xffffffffu, word, 31); }));
  }
}

// For scan_column(), `shared` must have room for Rows * Columns * V values. scan_column() does not
// use `shared` if Rows is 1.
template <class Op, int Rows, int Columns, bool Exclusive, int Items, int V>
CUTEGEN_FN void scan_column(typename Op::Value (&x)[Items][V], typename Op::Value (&carry)[V],
                            typename Op::Value* shared) {
  using Value = typename Op::Value;
  const int team = threadIdx.x / Columns, column = threadIdx.x % Columns;
  Value before[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    before[v] = carry[v];
#pragma unroll
    for (int i = 1; i < Items; ++i) x[i][v] = Op::combine(x[i - 1][v], x[i][v]);
    if (Rows == 1) carry[v] = Op::combine(carry[v], x[Items - 1][v]);
    else shared[(team * V + v) * Columns + column] = x[Items - 1][v];
  }
  if constexpr (Rows > 1) {
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) {
#pragma unroll
      for (int r = 0; r < Rows; ++r) {
        const Value total = shared[(r * V + v) * Columns + column];
        if (r < team) before[v] = Op::combine(before[v], total);
        carry[v] = Op::combine(carry[v], total);
      }
    }
  }
#pragma unroll
  for (int v = 0; v < V; ++v) {
#pragma unroll
    for (int i = Items - 1; i >= 0; --i) {
      if (Exclusive) x[i][v] = i == 0 ? before[v] : Op::combine(before[v], x[i == 0 ? 0 : i - 1][v]);
      else x[i][v] = Op::combine(before[v], x[i][v]);
    }
  }
}

// If several CTAs scan parts of one row, carry_of_warp() returns the carry with which a part
// begins. carry_of_warp() combines `parts` totals, one for each preceding part of the row;
// consecutive totals lie `apart` floats apart. The lanes of the warp share this work, and every
// lane returns the carry.
template <class Op>
CUTEGEN_FN float carry_of_warp(float const* totals, int64_t apart, int parts) {
  float carry = Op::neutral();
  for (int p = threadIdx.x % 32; p < parts; p += 32) carry = Op::combine(carry, totals[p * apart]);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2)
    carry = Op::combine(carry, __shfl_xor_sync(0xffffffffu, carry, mask));
  return carry;
}

// Computes the carries with which a part of an axis begins, for V columns of each thread. `totals`
// points to the total of the thread's first column. The teams of threads of the CTA share this
// work. For carry_of_columns(), `shared` must have room for Rows * Columns * V floats. Do not pass
// the buffer that the first call of scan_column uses.
template <class Op, int Rows, int Columns, int V>
CUTEGEN_FN void carry_of_columns(float (&carry)[V], float const* totals, int64_t apart, int parts, float* shared) {
  const int team = threadIdx.x / Columns, column = threadIdx.x % Columns;
#pragma unroll
  for (int v = 0; v < V; ++v) carry[v] = Op::neutral();
  for (int p = team; p < parts; p += Rows) {
#pragma unroll
    for (int v = 0; v < V; ++v) carry[v] = Op::combine(carry[v], totals[p * apart + v]);
  }
  if constexpr (Rows > 1) {
#pragma unroll
    for (int v = 0; v < V; ++v) shared[(team * V + v) * Columns + column] = carry[v];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) {
      carry[v] = Op::neutral();
#pragma unroll
      for (int r = 0; r < Rows; ++r) carry[v] = Op::combine(carry[v], shared[(r * V + v) * Columns + column]);
    }
  }
}

}  // namespace cutegen
