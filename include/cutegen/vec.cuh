// SPDX-License-Identifier: Apache-2.0
// Loads and stores of V neighbouring elements, converted to and from float (or int64_t).
//
// Contract: `g` is a rank-1 CuTe tensor of V elements in global memory. Its stride selects the
// access. Int<1>: one vector access; the address must be a multiple of the vector's size, or of 16
// bytes if that is less. Int<0>: one element for all V. Any other stride: V single elements.
//
// Example: float a[4]; cutegen::load(gA(_, i), a); ... cutegen::store(a, gOut(_, i));
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cute/tensor_impl.hpp>

namespace cutegen {

// Rounds to an 8-bit float as PyTorch does: beyond the largest number, e4m3 has NaN and e5m2 has
// infinity, while the GPU's conversion gives the largest number.
CUTE_DEVICE cute::float_e4m3_t to_e4m3(float x) {
  const cute::float_e4m3_t rounded(x);
  if (!(fabsf(x) > 464.0f)) return rounded;
  return cute::float_e4m3_t::bitcast(uint8_t(x < 0.0f ? 0xff : 0x7f));
}
CUTE_DEVICE cute::float_e5m2_t to_e5m2(float x) {
  const cute::float_e5m2_t rounded(x);
  if (!(fabsf(x) >= 61440.0f)) return rounded;
  return cute::float_e5m2_t::bitcast(uint8_t(x < 0.0f ? 0xfc : 0x7c));
}

// Converts an element: integers to integers exactly, all other types through float.
template <class To, class From>
CUTE_DEVICE To convert(From value) {
  if constexpr (cute::is_same_v<To, bool>) return value != From(0);
  else if constexpr (cute::is_same_v<To, cute::float_e4m3_t>) return to_e4m3(float(value));
  else if constexpr (cute::is_same_v<To, cute::float_e5m2_t>) return to_e5m2(float(value));
  else if constexpr (cute::is_integral<To>::value && cute::is_integral<From>::value)
    return To(value);
  else return To(float(value));
}
template <class T>
CUTE_DEVICE float to_float(T value) {
  return convert<float>(value);
}
template <class T, class R>
CUTE_DEVICE T from_float(R value) {
  return convert<T>(value);
}
// Rounds a float to the precision of T.
template <class T>
CUTE_DEVICE float round_to(float value) {
  return to_float(from_float<T>(value));
}

// V elements that one access moves. The widest access of one thread has 16 bytes.
template <class T, int V>
struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  T element[V];
};

template <class T>
inline constexpr bool is_half_v =
    cute::is_same_v<T, cute::half_t> || cute::is_same_v<T, cute::bfloat16_t>;

CUTE_DEVICE void pack_pair(float a, float b, cute::half_t* to) {
  const __half2 pair = __floats2half2_rn(a, b);
  memcpy(to, &pair, sizeof(pair));
}
CUTE_DEVICE void pack_pair(float a, float b, cute::bfloat16_t* to) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
  memcpy(to, &pair, sizeof(pair));
}

template <class R, int V, class Engine, class Layout>
CUTE_DEVICE void load(cute::Tensor<Engine, Layout> const& g, R (&r)[V]) {
  using T = cute::remove_cv_t<typename Engine::value_type>;
  using Step = decltype(cute::stride<0>(Layout{}));
  if constexpr (cute::is_constant<1, Step>::value) {
    auto pack = *reinterpret_cast<Pack<T, V> const*>(&g(0));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = convert<R>(pack.element[v]);
  } else if constexpr (cute::is_constant<0, Step>::value) {
    R value = convert<R>(T(g(0)));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = value;
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = convert<R>(T(g(v)));
  }
}

// Where an index leads along an axis of `size` elements that lie `stride` apart. Wraps: a negative
// index counts from the end. As in PyTorch, an index outside the axis stops the kernel. With 2, any
// index counts modulo the size.
template <int Wraps>
CUTE_DEVICE int64_t place(int64_t index, int64_t size, int64_t stride) {
  if (Wraps == 2) index %= size;
  if (Wraps && index < 0) index += size;
  if (uint64_t(index) >= uint64_t(size)) __trap();
  return index * stride;
}
template <int Wraps, class Indices>
struct Take {
  Indices indices;  // of the elements of a vector; with stride Int<0>, one for all of them
  int64_t size, stride;
  static constexpr bool kOnce =
      cute::is_constant<0, decltype(cute::stride<0>(typename Indices::layout_type{}))>::value;
  CUTE_DEVICE int64_t operator()(int v) const {
    return place<Wraps>(int64_t(indices(v)), size, stride);
  }
  // Adds where index `v` leads to `at`. Returns whether the index is outside the axis.
  CUTE_DEVICE bool move(int v, int64_t& at) const {
    int64_t index = int64_t(indices(v));
    if (Wraps == 2) index %= size;
    if (Wraps && index < 0) index += size;
    at += index * stride;
    return uint64_t(index) >= uint64_t(size);
  }
};
template <int Wraps, class Indices>
CUTE_DEVICE Take<Wraps, Indices> take(Indices const& indices, int64_t size, int64_t stride) {
  return {indices, size, stride};
}

// Finds where indices lead, for all V elements of a vector (N is 1) or for each. Returns whether an
// index is outside its axis: the caller stops the kernel before it reads.
template <int N, class... Takes>
CUTE_DEVICE bool find_places(int64_t (&at)[N], Takes const&... takes) {
  bool outside = false;
  CUTE_UNROLL
  for (int n = 0; n < N; ++n) {
    at[n] = 0;
    ((outside |= takes.move(n, at[n])), ...);
  }
  return outside;
}
template <class R, int V, int N, class Engine, class Layout>
CUTE_DEVICE void load_at(cute::Tensor<Engine, Layout> const& g, int64_t const (&at)[N],
                         R (&r)[V]) {
  static_assert(N == 1 || N == V);
  using T = cute::remove_cv_t<typename Engine::value_type>;
  if constexpr (N == 1) {
    load(cute::make_tensor(g.data() + at[0], g.layout()), r);
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = convert<R>(T(*(&g(v) + at[v])));
  }
}

// The same as load_taken, but the caller stops the kernel before it ends if `outside` becomes true:
// loads do not wait for the check of an earlier index. An index outside its axis reads no element.
template <class R, int V, class Engine, class Layout, class... Takes>
CUTE_DEVICE void load_taken(cute::Tensor<Engine, Layout> const& g, R (&r)[V], bool& outside,
                            Takes const&... takes) {
  constexpr int kPlaces = (Takes::kOnce && ...) ? 1 : V;
  int64_t at[kPlaces];
  const bool wrong = find_places(at, takes...);
  outside |= wrong;
  CUTE_UNROLL
  for (int n = 0; n < kPlaces; ++n) at[n] = wrong ? 0 : at[n];
  load_at(g, at, r);
}

// Loads the elements that indices choose: all V at the place of one index, or each at its own.
template <class R, int V, class Engine, class Layout, class... Takes>
CUTE_DEVICE void load_taken(cute::Tensor<Engine, Layout> const& g, R (&r)[V],
                            Takes const&... takes) {
  using T = cute::remove_cv_t<typename Engine::value_type>;
  if constexpr ((Takes::kOnce && ...)) {
    load(cute::make_tensor(g.data() + (takes(0) + ...), g.layout()), r);
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = convert<R>(T(*(&g(v) + (takes(v) + ...))));
  }
}

template <class R, int V, class Engine, class Layout>
CUTE_DEVICE void store(R const (&r)[V], cute::Tensor<Engine, Layout> const& g) {
  using T = typename Engine::value_type;
  using Step = decltype(cute::stride<0>(Layout{}));
  if constexpr (cute::is_constant<1, Step>::value) {
    Pack<T, V> pack;
    if constexpr (cute::is_same_v<R, float> && V % 2 == 0 && is_half_v<T>) {
      // One instruction converts two floats.
      CUTE_UNROLL
      for (int v = 0; v < V; v += 2) pack_pair(r[v], r[v + 1], &pack.element[v]);
    } else {
      CUTE_UNROLL
      for (int v = 0; v < V; ++v) pack.element[v] = convert<T>(r[v]);
    }
    *reinterpret_cast<Pack<T, V>*>(&g(0)) = pack;
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) g(v) = convert<T>(r[v]);
  }
}

// Stores elements at the places that indices choose, as load_at reads them.
template <class R, int V, int N, class Engine, class Layout>
CUTE_DEVICE void store_at(R const (&r)[V], cute::Tensor<Engine, Layout> const& g,
                          int64_t const (&at)[N]) {
  static_assert(N == 1 || N == V);
  using T = typename Engine::value_type;
  if constexpr (N == 1) {
    store(r, cute::make_tensor(g.data() + at[0], g.layout()));
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) *(&g(v) + at[v]) = convert<T>(r[v]);
  }
}

// Loads V elements for each of S lists that take turns: element v of list s is element v * S + s.
template <class R, int S, int V, class Engine, class Layout>
CUTE_DEVICE void load_turns(cute::Tensor<Engine, Layout> const& g, R (&r)[S][V]) {
  R all[S * V];
  load(g, all);
  CUTE_UNROLL
  for (int s = 0; s < S; ++s) {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[s][v] = all[v * S + s];
  }
}
template <class R, int S, int V, class Engine, class Layout>
CUTE_DEVICE void store_turns(R const (&r)[S][V], cute::Tensor<Engine, Layout> const& g) {
  R all[S * V];
  CUTE_UNROLL
  for (int s = 0; s < S; ++s) {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) all[v * S + s] = r[s][v];
  }
  store(all, g);
}

}  // namespace cutegen
