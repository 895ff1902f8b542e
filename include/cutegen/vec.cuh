// SPDX-License-Identifier: Apache-2.0
// Loads and stores of V neighbouring elements, converted to and from float.
//
// Contract: `g` is a rank-1 CuTe tensor of V elements in global memory. Its stride says how it is
// read: Int<1> one vector access (the address must be a multiple of V elements, 16 bytes at most),
// Int<0> one element for all V, anything else V single elements.
//
// Example: float a[4]; cutegen::load(gA(_, i), a); ... cutegen::store(a, gOut(_, i));
#pragma once

#include <cute/tensor.hpp>

namespace cutegen {

template <class T>
CUTE_DEVICE float to_float(T value) {
  return static_cast<float>(value);
}
template <class T>
CUTE_DEVICE T from_float(float value) {
  if constexpr (cute::is_same_v<T, bool>) return value != 0.0f;
  else return static_cast<T>(value);
}
// A float rounded as if it had been stored as T.
template <class T>
CUTE_DEVICE float round_to(float value) {
  return to_float(from_float<T>(value));
}

// V elements that move as one access; 16 bytes is the widest access of one thread.
template <class T, int V>
struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  T element[V];
};

template <int V, class Engine, class Layout>
CUTE_DEVICE void load(cute::Tensor<Engine, Layout> const& g, float (&r)[V]) {
  using T = cute::remove_cv_t<typename Engine::value_type>;
  using Step = decltype(cute::stride<0>(Layout{}));
  if constexpr (cute::is_constant<1, Step>::value) {
    auto pack = *reinterpret_cast<Pack<T, V> const*>(&g(0));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = to_float(pack.element[v]);
  } else if constexpr (cute::is_constant<0, Step>::value) {
    float value = to_float(g(0));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = value;
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = to_float(g(v));
  }
}

template <int V, class Engine, class Layout>
CUTE_DEVICE void store(float const (&r)[V], cute::Tensor<Engine, Layout> const& g) {
  using T = typename Engine::value_type;
  using Step = decltype(cute::stride<0>(Layout{}));
  if constexpr (cute::is_constant<1, Step>::value) {
    Pack<T, V> pack;
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) pack.element[v] = from_float<T>(r[v]);
    *reinterpret_cast<Pack<T, V>*>(&g(0)) = pack;
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) g(v) = from_float<T>(r[v]);
  }
}

}  // namespace cutegen
