// SPDX-License-Identifier: Apache-2.0
// Scatters values to global memory: a tensor gives an index for each value, and the functions
// combine the value with the element at this index. Several threads may combine their values with
// the same element.
//
// Contract: add_at and merge_at take V values, a tensor, and the offsets that find_places (vec.cuh)
// computed: one offset for all values (N is 1), or one for each value. The function add_at uses
// hardware atomics, except for very small floats (see add_element()). The function merge_at repeats
// a compare-and-swap until no other thread has changed the element in between. Elements have 32 or
// 64 bits. The order of the scattered additions differs from run to run.
//
// Example: cutegen::add_at(r, g(_, j), places);
#pragma once

#include <cutegen/vec.cuh>

namespace cutegen {

struct Multiplied {
  template <class T>
  static CUTE_DEVICE T combine(T a, T b) { return a * b; }
};
struct Most {
  template <class T>
  static CUTE_DEVICE T combine(T a, T b) { return a >= b || a != a ? a : b; }
};
struct Least {
  template <class T>
  static CUTE_DEVICE T combine(T a, T b) { return a <= b || a != a ? a : b; }
};

struct Added {
  template <class T>
  static CUTE_DEVICE T combine(T a, T b) { return a + b; }
};

CUTE_DEVICE void add_element(int* to, int x) { atomicAdd(to, x); }
CUTE_DEVICE void add_element(int64_t* to, int64_t x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
}

template <class Op, class T>
CUTE_DEVICE void merge_element(T* to, T x) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  using Word = cute::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
  union Bits {
    T value;
    Word word;
  };
  Word* const place = reinterpret_cast<Word*>(to);
  Bits now, next;
  now.word = atomicCAS(place, Word(0), Word(0));  // an atomic read
  for (;;) {
    next.value = Op::combine(now.value, x);
    const Word before = atomicCAS(place, now.word, next.word);
    if (before == now.word) return;
    now.word = before;
  }
}

// The hardware's atomic addition flushes subnormal numbers to zero. If |x| is at least 2^-100,
// flushing cannot change the rounded sum. For smaller |x|, add_element() adds with
// compare-and-swap.
CUTE_DEVICE void add_element(float* to, float x) {
  if (!(fabsf(x) < 7.8886091e-31f)) atomicAdd(to, x);
  else if (x != 0.0f) merge_element<Added>(to, x);
}

template <class R, int V, int N, class Engine, class Layout>
CUTE_DEVICE void add_at(R const (&r)[V], cute::Tensor<Engine, Layout> const& g,
                        int64_t const (&at)[N]) {
  using T = typename Engine::value_type;
  CUTE_UNROLL
  for (int v = 0; v < V; ++v) add_element(&g(v) + at[N == 1 ? 0 : v], convert<T>(r[v]));
}

template <class Op, class R, int V, int N, class Engine, class Layout>
CUTE_DEVICE void merge_at(R const (&r)[V], cute::Tensor<Engine, Layout> const& g,
                          int64_t const (&at)[N]) {
  using T = typename Engine::value_type;
  CUTE_UNROLL
  for (int v = 0; v < V; ++v) merge_element<Op>(&g(v) + at[N == 1 ? 0 : v], convert<T>(r[v]));
}

}  // namespace cutegen
