// SPDX-License-Identifier: Apache-2.0
// Loads and stores V elements of a tensor, and converts them to and from float (or int64_t).
//
// Contract: `g` is a rank-1 CuTe tensor of V elements in global memory. The stride of `g` selects
// the kind of access. With stride Int<1>, vector accesses of up to 16 bytes move all V elements;
// the address must be a multiple of the vector's size, or of 16 bytes if the vector is larger. With
// stride Int<0>, load() reads one element and copies it to all V elements. With any other stride, V
// accesses move one element each.
//
// Example: float a[4]; cutegen::load(gA(_, i), a); ... cutegen::store(a, gOut(_, i));
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cute/tensor_impl.hpp>

namespace cutegen {

// Rounds to an 8-bit float as PyTorch does: a number that is too large becomes NaN in e4m3, and
// infinity in e5m2. The GPU's conversion would return the largest finite number instead.
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

// Converts a pair of floats (x and 0), because the GPU converts pairs on a faster pipe than single
// floats.
CUTE_DEVICE cute::bfloat16_t to_bfloat16(float x) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, 0.0f);
  cute::bfloat16_t rounded;
  memcpy(&rounded, &pair, sizeof(rounded));
  return rounded;
}

// Converts an element. Conversions between integers are exact; all other conversions go through
// float.
template <class To, class From>
CUTE_DEVICE To convert(From value) {
  if constexpr (cute::is_same_v<To, bool>) return value != From(0);
  else if constexpr (cute::is_same_v<From, bool>) return value ? To(1) : To(0);
  else if constexpr (cute::is_same_v<To, cute::bfloat16_t>) return to_bfloat16(float(value));
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

// A Pack has V elements that a thread moves together. The alignment of a Pack is at most 16 bytes,
// because the widest access of a thread has 16 bytes.
template <class T, int V>
struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  T element[V];
};

template <class T>
inline constexpr bool is_half_v =
    cute::is_same_v<T, cute::half_t> || cute::is_same_v<T, cute::bfloat16_t>;

template <class T>
inline constexpr bool is_float8_v =
    cute::is_same_v<T, cute::float_e4m3_t> || cute::is_same_v<T, cute::float_e5m2_t>;

CUTE_DEVICE void pack_pair(float a, float b, cute::half_t* to) {
  const __half2 pair = __floats2half2_rn(a, b);
  memcpy(to, &pair, sizeof(pair));
}
CUTE_DEVICE void pack_pair(float a, float b, cute::bfloat16_t* to) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
  memcpy(to, &pair, sizeof(pair));
}

// Stores a Pack to global memory with accesses of 16, 8 or 4 bytes. write_pack() uses inline PTX,
// because the compiler splits some stores of structs into smaller stores.
template <class T, int V>
CUTE_DEVICE void write_pack(Pack<T, V> const& pack, T* to) {
  constexpr int kBytes = sizeof(Pack<T, V>), kWords = kBytes / 4;
  if constexpr (kBytes % 4 != 0) {
    *reinterpret_cast<Pack<T, V>*>(to) = pack;
  } else {
    uint32_t w[kWords];
    memcpy(w, &pack, kBytes);
    const size_t at = __cvta_generic_to_global(to);
    if constexpr (kWords % 4 == 0) {
      CUTE_UNROLL
      for (int i = 0; i < kWords; i += 4)
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at + 4 * i), "r"(w[i]),
                     "r"(w[i + 1]), "r"(w[i + 2]), "r"(w[i + 3])
                     : "memory");
    } else if constexpr (kWords == 2) {
      asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w[0]), "r"(w[1]) : "memory");
    } else {
      CUTE_UNROLL
      for (int i = 0; i < kWords; ++i)
        asm volatile("st.global.b32 [%0], %1;" ::"l"(at + 4 * i), "r"(w[i]) : "memory");
    }
  }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define CUTEGEN_FLOAT8_PAIRS 1
#endif

// Converts elements in registers, in pairs if the GPU has an instruction for pairs.
template <class To, class From, int V>
CUTE_DEVICE void convert_all(From const (&from)[V], To (&to)[V]) {
#ifdef CUTEGEN_FLOAT8_PAIRS
  if constexpr (cute::is_same_v<To, float> && is_float8_v<From> && V % 2 == 0) {
    CUTE_UNROLL
    for (int v = 0; v < V; v += 2) {
      uint16_t pair;
      uint32_t halves;
      memcpy(&pair, &from[v], sizeof(pair));
      if constexpr (cute::is_same_v<From, cute::float_e4m3_t>)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
      else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
      __half2 both;
      memcpy(&both, &halves, sizeof(both));
      const float2 floats = __half22float2(both);
      to[v] = floats.x, to[v + 1] = floats.y;
    }
    return;
  }
  if constexpr (cute::is_same_v<From, float> && is_float8_v<To> && V % 2 == 0) {
    constexpr bool kE4m3 = cute::is_same_v<To, cute::float_e4m3_t>;
    float most = 0.0f;
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) most = fmaxf(most, fabsf(from[v]));
    // Up to these limits, values round to finite 8-bit numbers, and the instruction never
    // saturates.
    if (kE4m3 ? most <= 464.0f : most < 61440.0f) {
      CUTE_UNROLL
      for (int v = 0; v < V; v += 2) {
        uint16_t pair;
        if constexpr (kE4m3)
          asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
              : "=h"(pair)
              : "f"(from[v + 1]), "f"(from[v]));
        else
          asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;"
              : "=h"(pair)
              : "f"(from[v + 1]), "f"(from[v]));
        memcpy(&to[v], &pair, sizeof(pair));
      }
      return;
    }
  }
#endif
  if constexpr (cute::is_same_v<From, float> && is_half_v<To> && V % 2 == 0) {
    CUTE_UNROLL
    for (int v = 0; v < V; v += 2) pack_pair(from[v], from[v + 1], &to[v]);
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) to[v] = convert<To>(from[v]);
  }
}

// True if positions() made the tensor: its elements are consecutive numbers and not in memory.
template <class Iterator>
inline constexpr bool is_positions_v =
    cute::is_same_v<Iterator, cute::counting_iterator<int64_t>> ||
    cute::is_same_v<Iterator, cute::counting_iterator<int>>;

template <class R, int V, class Engine, class Layout>
CUTE_DEVICE void load(cute::Tensor<Engine, Layout> const& g, R (&r)[V]) {
  using T = cute::remove_cv_t<typename Engine::value_type>;
  using Step = decltype(cute::stride<0>(Layout{}));
  constexpr bool kMemory = !is_positions_v<typename Engine::iterator>;
  if constexpr (kMemory && cute::is_constant<1, Step>::value) {
    auto pack = *reinterpret_cast<Pack<T, V> const*>(&g(0));
    convert_all(pack.element, r);
  } else if constexpr (cute::is_constant<0, Step>::value) {
    R value = convert<R>(T(g(0)));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = value;
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = convert<R>(T(g(v)));
  }
}

// Loads neighbouring elements without conversion, so that they occupy fewer registers. Convert each
// element with to_float() when you need it.
template <class T, int V, class Engine, class Layout>
CUTE_DEVICE void load_pack(cute::Tensor<Engine, Layout> const& g, Pack<T, V>& pack) {
  pack = *reinterpret_cast<Pack<T, V> const*>(&g(0));
}

// The function coordinates() converts a linear index `at` into coordinates of a shape whose first
// axis is the innermost. The caller passes an `inverse`, (2^32 - 1) / size, for each axis except
// the last. `at` must be below 2^31. The upper half of the product at * inverse is then the
// quotient or the quotient minus one, and quotient_by() corrects it.
CUTE_DEVICE unsigned quotient_by(unsigned at, unsigned size, unsigned inverse) {
  const unsigned quotient = __umulhi(at, inverse);
  return quotient + (at - quotient * size >= size ? 1 : 0);
}
template <int Axis, class Shape>
CUTE_DEVICE auto coordinates_from(unsigned at, Shape const&) {
  return cute::make_tuple(int(at));
}
template <int Axis, class Shape, class... Inverses>
CUTE_DEVICE auto coordinates_from(unsigned at, Shape const& shape, int64_t inverse,
                                  Inverses... inverses) {
  const unsigned size = unsigned(cute::get<Axis>(shape)),
                 next = quotient_by(at, size, unsigned(inverse));
  return cute::tuple_cat(cute::make_tuple(int(at - next * size)),
                         coordinates_from<Axis + 1>(next, shape, inverses...));
}
template <class Shape, class... Inverses>
CUTE_DEVICE auto coordinates(int at, Shape const& shape, Inverses... inverses) {
  return coordinates_from<0>(unsigned(at), shape, inverses...);
}

// tile_coordinates() orders vectors in tiles of 256: a tile has Inner vectors along the innermost
// axis, and 256 / Inner along the axis Axis. Tiles at an edge are as large as others, so
// tile_coordinates() may return coordinates outside the shape. Pass the inverses of the numbers of
// tiles.
template <int Axis, int Inner, class Shape>
CUTE_DEVICE auto tiles_of(Shape const& shape) {
  auto tiles = shape;
  cute::get<0>(tiles) = cute::ceil_div(cute::get<0>(shape), Inner);
  cute::get<Axis>(tiles) = cute::ceil_div(cute::get<Axis>(shape), 256 / Inner);
  return tiles;
}
template <int Axis, int Inner, class Shape>
CUTE_DEVICE int vectors_in_tiles(Shape const& shape) {
  return cute::size(tiles_of<Axis, Inner>(shape)) * 256;
}
template <int Axis, int Inner, class Shape, class... Inverses>
CUTE_DEVICE auto tile_coordinates(int at, Shape const& shape, Inverses... inverses) {
  const unsigned in = unsigned(at) % 256;
  auto c = coordinates(int(unsigned(at) / 256), tiles_of<Axis, Inner>(shape), inverses...);
  cute::get<0>(c) = cute::get<0>(c) * Inner + int(in % Inner);
  cute::get<Axis>(c) = cute::get<Axis>(c) * (256 / Inner) + int(in / Inner);
  return c;
}
// Returns the coordinates inside the shape that are nearest to the given ones.
template <class Coordinates, class Shape>
CUTE_DEVICE auto nearest(Coordinates const& coordinates, Shape const& shape) {
  return cute::transform(coordinates, shape,
                         [](int at, int size) { return at < size ? at : size - 1; });
}

// Returns a tensor of positions along an axis: the element at offset i is the number first + i.
template <class Int = int64_t, class Layout>
CUTE_DEVICE auto positions(cute::remove_cv_t<Int> first, Layout const& layout) {
  return cute::make_tensor(cute::counting_iterator<Int>(first), layout);
}

// Converts an index into a position on an axis of `size` elements. If Wraps is 0, the position
// equals the index. If Wraps is 1, a negative index counts from the end. If Wraps is 2, the index
// counts modulo the size. If Wraps is 3, an index outside the axis selects the nearest element. If
// Wraps is 4, the function reflects an index outside the axis at the axis's ends. If Wraps is 5, an
// index in [0, 2 * size) counts modulo the size.
template <int Wraps, class Int>
CUTE_DEVICE Int inside_axis(Int index, Int size) {
  const Int last = size - 1;
  if (Wraps == 3) return cute::max(Int(0), cute::min(index, last));
  if (Wraps == 4) return last - cute::abs(last - cute::abs(index));
  if (Wraps == 5) return index < size ? index : index - size;
  if (Wraps == 2) index %= size;
  return Wraps && index < 0 ? index + size : index;
}

// Returns the offset of an index on an axis whose elements lie `stride` elements apart. As in
// PyTorch, an index outside the axis stops the kernel.
template <int Wraps>
CUTE_DEVICE int64_t place(int64_t index, int64_t size, int64_t stride) {
  index = inside_axis<Wraps>(index, size);
  if (uint64_t(index) >= uint64_t(size)) __trap();
  return index * stride;
}
// A Take computes the offset of the element that an index selects. If Wraps is 6, the index keeps
// its own axis, and the Take returns an offset from the element at the index: the offset of `first`
// elements or, if that element is outside the axis, 0. The axis must then have at most 2^31
// elements, and 32-bit positions in `indices` and `first` must be below 2^30.
template <int Wraps, class Indices>
struct Take {
  // `indices` has one index per element of a vector or, with stride Int<0>, one for all elements.
  Indices indices;
  int64_t size, stride;
  int64_t first = 0, step = 1;  // index i stands for first + step * i
  static constexpr bool kOnce =
      cute::is_constant<0, decltype(cute::stride<0>(typename Indices::layout_type{}))>::value;
  // If positions have 32 bits, move() computes with 32-bit integers, which do not overflow.
  static constexpr bool kShort = (Wraps == 3 || Wraps == 4) &&
                                 cute::is_same_v<typename Indices::iterator, cute::counting_iterator<int>>;
  CUTE_DEVICE int64_t operator()(int v) const {
    if constexpr (Wraps == 6) {
      int64_t at = 0;
      move(v, at);
      return at;
    }
    return place<Wraps>(first + step * int64_t(indices(v)), size, stride);
  }
  // Adds the offset of index `v` to `at`. Returns true if the index is outside the axis.
  CUTE_DEVICE bool move(int v, int64_t& at) const {
    if constexpr (Wraps == 6) {
      const bool inside = unsigned(int(indices(v)) + int(first)) < unsigned(size);
      at += inside ? first * stride : 0;
      return false;
    }
    if constexpr (kShort) {
      const int most = int(cute::min(size, int64_t(INT32_MAX)));
      const int index = inside_axis<Wraps>(int(first) + int(step) * indices(v), most);
      at += index * stride;
      return unsigned(index) >= unsigned(most);
    }
    const int64_t index = inside_axis<Wraps>(first + step * int64_t(indices(v)), size);
    at += index * stride;
    return uint64_t(index) >= uint64_t(size);
  }
};
template <int Wraps, class Indices>
CUTE_DEVICE Take<Wraps, Indices> take(Indices const& indices, int64_t size, int64_t stride,
                                      int64_t first = 0, int64_t step = 1) {
  return {indices, size, stride, first, step};
}

// Computes one offset for all V elements of a vector (if N is 1), or one for each element. Each
// offset is the sum of the offsets of all `takes`. Returns true if an index is outside its axis;
// the caller must then stop the kernel before it reads.
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

// Gathers elements like the load_taken() below, but does not stop the kernel if an index is outside
// its axis. Instead, this load_taken() sets `outside` and reads the element at offset 0. The caller
// must stop the kernel later if `outside` is true. With an `outside` argument, loads do not wait
// for the checks of earlier indices.
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

// Gathers elements. If each of `takes` has one index for the whole vector, load_taken() reads V
// elements at the offset of these indices. Otherwise, it reads each element at the offset of the
// element's own indices.
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
    convert_all(r, pack.element);
    if constexpr (cute::is_gmem<typename Engine::iterator>::value)
      write_pack(pack, &g(0));
    else
      *reinterpret_cast<Pack<T, V>*>(&g(0)) = pack;
  } else {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) g(v) = convert<T>(r[v]);
  }
}

// Stores elements at offsets that find_places() computed. load_at() reads from the same offsets.
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

// A Held has V elements without conversion. hold() reads them before any later store of the thread,
// and held() converts them, so a kernel can start several loads before its first store.
template <class T, int V>
struct Held {
  static constexpr int kBytes = int(sizeof(T)) * V, kWords = (kBytes + 3) / 4;
  uint32_t words[kWords] = {};
};
template <class T, int V, class Engine, class Layout>
CUTE_DEVICE void hold(cute::Tensor<Engine, Layout> const& g, Held<T, V>& to) {
  using Step = decltype(cute::stride<0>(Layout{}));
  constexpr int kWords = Held<T, V>::kWords;
  if constexpr (cute::is_constant<1, Step>::value && Held<T, V>::kBytes % 16 == 0) {
    const size_t from = __cvta_generic_to_global(&g(0));
    CUTE_UNROLL
    for (int i = 0; i < kWords; i += 4)
      asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to.words[i]), "=r"(to.words[i + 1]), "=r"(to.words[i + 2]),
                     "=r"(to.words[i + 3])
                   : "l"(from + 4 * i)
                   : "memory");
  } else if constexpr (cute::is_constant<0, Step>::value) {
    const T value = g(0);
    memcpy(to.words, &value, sizeof(T));
  } else {
    Pack<T, V> pack;
    if constexpr (cute::is_constant<1, Step>::value) {
      pack = *reinterpret_cast<Pack<T, V> const*>(&g(0));
    } else {
      CUTE_UNROLL
      for (int v = 0; v < V; ++v) pack.element[v] = g(v);
    }
    memcpy(to.words, &pack, Held<T, V>::kBytes);
  }
}
template <class R, class T, int V, class Engine, class Layout>
CUTE_DEVICE void held(cute::Tensor<Engine, Layout> const&, Held<T, V> const& from, R (&r)[V]) {
  if constexpr (cute::is_constant<0, decltype(cute::stride<0>(Layout{}))>::value) {
    T value;
    memcpy(&value, from.words, sizeof(T));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = convert<R>(value);
  } else {
    Pack<T, V> pack;
    memcpy(&pack, from.words, Held<T, V>::kBytes);
    convert_all(pack.element, r);
  }
}

// Loads S * V elements and deinterleaves them: r[s][v] is element v * S + s. store_turns() does the
// reverse: it interleaves the elements of r and stores them.
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
