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

// Converts an element: integers to integers exactly, all other types through float.
template <class To, class From>
CUTE_DEVICE To convert(From value) {
  if constexpr (cute::is_same_v<To, bool>) return value != From(0);
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

}  // namespace cutegen
