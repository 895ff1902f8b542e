// SPDX-License-Identifier: Apache-2.0
// Cumulative sums, products, maxima and minima of a tile that the threads of a CTA hold.
//
// Contract: an operation (Add, Multiply, Largest, Smallest) has a neutral element and combine(). Each
// thread holds x[Items][V]. scan_row: `Width` threads (a power of two up to 32, or all threads of the
// CTA) hold a row's next Items * Width * V elements, in the order item, thread, element. scan_column:
// Rows teams of Columns threads hold the next Rows * Items steps of V columns each, in the order team,
// item. Both replace x by the results, starting from `carry`, and set `carry` to the value after the tile.
// With `Exclusive`, a result excludes the element itself. All threads of the CTA must call them (with a
// Width of at most 32, all threads of the warp). Calls must alternate between two buffers for `shared`.
//
// Example: float carry = 0; scan_row<Add, 256, false>(x, carry, shared + (tile % 2) * 32);
#pragma once

#include <cutegen/math.cuh>

namespace cutegen {

#define CUTEGEN_FN __device__ __forceinline__

struct Add {
  static CUTEGEN_FN float neutral() { return 0.0f; }
  static CUTEGEN_FN float combine(float a, float b) { return a + b; }
};

struct Multiply {
  static CUTEGEN_FN float neutral() { return 1.0f; }
  static CUTEGEN_FN float combine(float a, float b) { return a * b; }
};

struct Largest {
  static CUTEGEN_FN float neutral() { return -infinity(); }
  static CUTEGEN_FN float combine(float a, float b) { return maximum(a, b); }
};

struct Smallest {
  static CUTEGEN_FN float neutral() { return infinity(); }
  static CUTEGEN_FN float combine(float a, float b) { return minimum(a, b); }
};

// Lane i of each aligned group of Width lanes gets the combination of the group's lanes 0 to i.
template <class Op, int Width>
CUTEGEN_FN float scan_lanes(float x) {
  const int lane = threadIdx.x % Width;
#pragma unroll
  for (int apart = 1; apart < Width; apart *= 2) {
    const float before = __shfl_up_sync(0xffffffffu, x, apart, Width);
    if (lane >= apart) x = Op::combine(before, x);
  }
  return x;
}

// Combines each running result x[i] with `before`. Exclusive: shifts them by one, so x[0] is `before`.
template <class Op, bool Exclusive, int N>
CUTEGEN_FN void from_before(float before, float (&x)[N]) {
#pragma unroll
  for (int i = N - 1; i >= 0; --i) {
    if (Exclusive) x[i] = i == 0 ? before : Op::combine(before, x[i == 0 ? 0 : i - 1]);
    else x[i] = Op::combine(before, x[i]);
  }
}

template <class Op, int N>
CUTEGEN_FN void scan_own(float (&x)[N]) {
#pragma unroll
  for (int i = 1; i < N; ++i) x[i] = Op::combine(x[i - 1], x[i]);
}

// `shared` holds 32 floats. A Width of at most 32 does not use it.
template <class Op, int Width, bool Exclusive, int Items, int V>
CUTEGEN_FN void scan_row(float (&x)[Items][V], float& carry, float* shared) {
  constexpr int kLanes = Width < 32 ? Width : 32, kWarps = Width / kLanes;
  static_assert(kWarps == 1 || Items * kWarps <= 32, "a warp combines the totals of all warps");
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / 32;
  // Combination of the lanes before this one, and of the whole group.
  float before[Items], total[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    scan_own<Op>(x[i]);
    const float here = scan_lanes<Op, kLanes>(x[i][V - 1]);
    const float up = __shfl_up_sync(0xffffffffu, here, 1, kLanes);
    before[i] = lane == 0 ? Op::neutral() : up;
    total[i] = __shfl_sync(0xffffffffu, here, kLanes - 1, kLanes);
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
    const float all = scan_lanes<Op, 32>(lane < Items * kWarps ? shared[lane] : Op::neutral());
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int at = i * kWarps + warp;
      const float others = __shfl_sync(0xffffffffu, all, at == 0 ? 0 : at - 1);
      const float own = at == 0 ? before[i] : Op::combine(others, before[i]);
      from_before<Op, Exclusive>(Op::combine(carry, own), x[i]);
    }
    carry = Op::combine(carry, __shfl_sync(0xffffffffu, all, 31));
  }
}

// `shared` holds Rows * Columns * V floats. Rows 1 does not use it.
template <class Op, int Rows, int Columns, bool Exclusive, int Items, int V>
CUTEGEN_FN void scan_column(float (&x)[Items][V], float (&carry)[V], float* shared) {
  const int team = threadIdx.x / Columns, column = threadIdx.x % Columns;
  float before[V];
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
        const float total = shared[(r * V + v) * Columns + column];
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

// Returns the carry at the start of a part of a row, in every lane of the warp: the combined totals
// of the parts before it, which lie `apart` floats apart. The lanes divide the parts among them.
template <class Op>
CUTEGEN_FN float carry_of_warp(float const* totals, int64_t apart, int parts) {
  float carry = Op::neutral();
  for (int p = threadIdx.x % 32; p < parts; p += 32) carry = Op::combine(carry, totals[p * apart]);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2)
    carry = Op::combine(carry, __shfl_xor_sync(0xffffffffu, carry, mask));
  return carry;
}

// The same for V columns of a thread: `totals` points to the first one. The CTA's teams divide the
// parts among them. `shared` is as for scan_column, but must differ from the buffer of the first
// tile.
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
