// SPDX-License-Identifier: Apache-2.0
// Loads and stores a block of A x B elements of a tensor, and converts them to and from float (or
// int64_t).
//
// Contract: `g` is a CuTe tensor in global memory with one mode, (A, B), and static sizes. Element
// (a, b) corresponds to element a + A * b of the array in registers. The strides of `g` select the
// accesses. If the block is contiguous (strides Int<1> and Int<A>), vectors of up to 16 bytes move
// all elements. If only one of the strides is Int<1> and the size of this mode is a power of two,
// load_block() reads vectors along the mode, but store_block() writes vectors only along A. A
// stride Int<0> means that load_block() reads an element once for the whole mode. In all other
// cases, each element has its own access. Vectors must be aligned to their size.
//
// Example: float r[16]; cutegen::load_block(gA(_, i), r); ... cutegen::store_block(r, gOut(_, i));
#pragma once

#include <cutegen/vec.cuh>

namespace cutegen {

// Returns a static stride if the compiler may know it, and the dynamic one otherwise.
template <bool Known, int Static>
CUTE_DEVICE auto known_stride(int64_t stride) {
  if constexpr (Known) return cute::Int<Static>{};
  else return stride;
}

// The sizes A and B of a block, and which strides let vectors move its elements or share one
// element.
template <class Layout>
struct BlockOf {
  static constexpr int A = decltype(cute::size<0, 0>(Layout{}))::value,
                       B = decltype(cute::size<0, 1>(Layout{}))::value;
  using StepA = decltype(cute::stride<0, 0>(Layout{}));
  using StepB = decltype(cute::stride<0, 1>(Layout{}));
  static constexpr bool kSameA = A == 1 || cute::is_constant<0, StepA>::value,
                        kSameB = B == 1 || cute::is_constant<0, StepB>::value,
                        kNextA = cute::is_constant<1, StepA>::value && (A & (A - 1)) == 0,
                        kNextB = cute::is_constant<1, StepB>::value && (B & (B - 1)) == 0,
                        kRun = cute::is_constant<1, StepA>::value &&
                               (B == 1 || cute::is_constant<A, StepB>::value);
};

// Returns the number of elements of T that one access of a contiguous run of V elements moves.
template <class T, int V>
constexpr int width_of_run() {
  int width = 1;
  while (width * 2 * int(sizeof(T)) <= 16 && V % (width * 2) == 0) width *= 2;
  return width;
}

// Converts W neighbouring elements and writes them to r[first], r[first + step], ...
template <int W, class T, class R, int V>
CUTE_DEVICE void load_part(T const* from, R (&r)[V], int first, int step) {
  R part[W];
  load(cute::make_tensor(cute::make_gmem_ptr(from), cute::Layout<cute::Int<W>, cute::Int<1>>{}),
       part);
  CUTE_UNROLL
  for (int w = 0; w < W; ++w) r[first + w * step] = part[w];
}
template <int W, class T, class R, int V>
CUTE_DEVICE void store_part(R const (&r)[V], int first, T* to) {
  R part[W];
  CUTE_UNROLL
  for (int w = 0; w < W; ++w) part[w] = r[first + w];
  store(part, cute::make_tensor(cute::make_gmem_ptr(to), cute::Layout<cute::Int<W>, cute::Int<1>>{}));
}

template <class R, int V, class Engine, class Layout>
CUTE_DEVICE void load_block(cute::Tensor<Engine, Layout> const& g, R (&r)[V]) {
  using T = cute::remove_cv_t<typename Engine::value_type>;
  using Block = BlockOf<Layout>;
  constexpr int A = Block::A, B = Block::B;
  static_assert(V == A * B);
  const auto at = [&](int a, int b) { return &g(cute::make_coord(cute::make_coord(a, b))); };
  if constexpr (Block::kRun) {
    constexpr int kWidth = width_of_run<T, V>();
    CUTE_UNROLL
    for (int v = 0; v < V; v += kWidth) load_part<kWidth>(at(0, 0) + v, r, v, 1);
  } else if constexpr (Block::kNextA) {
    constexpr int kLines = Block::kSameB ? 1 : B;
    CUTE_UNROLL
    for (int b = 0; b < kLines; ++b) load_part<A>(at(0, b), r, A * b, 1);
  } else if constexpr (Block::kNextB) {
    constexpr int kLines = Block::kSameA ? 1 : A;
    CUTE_UNROLL
    for (int a = 0; a < kLines; ++a) load_part<B>(at(a, 0), r, a, A);
  } else {
    CUTE_UNROLL
    for (int b = 0; b < (Block::kSameB ? 1 : B); ++b) {
      CUTE_UNROLL
      for (int a = 0; a < (Block::kSameA ? 1 : A); ++a) r[a + A * b] = convert<R>(T(*at(a, b)));
    }
  }
  // If a stride is 0, copies the element that all elements of this mode share.
  CUTE_UNROLL
  for (int v = 0; v < V; ++v)
    r[v] = r[(Block::kSameA && !Block::kRun ? 0 : v % A) +
             (Block::kSameB && !Block::kRun ? 0 : v / A * A)];
}

template <class R, int V, class Engine, class Layout>
CUTE_DEVICE void store_block(R const (&r)[V], cute::Tensor<Engine, Layout> const& g) {
  using T = typename Engine::value_type;
  using Block = BlockOf<Layout>;
  constexpr int A = Block::A, B = Block::B;
  static_assert(V == A * B);
  const auto at = [&](int a, int b) { return &g(cute::make_coord(cute::make_coord(a, b))); };
  if constexpr (Block::kRun) {
    constexpr int kWidth = width_of_run<T, V>();
    CUTE_UNROLL
    for (int v = 0; v < V; v += kWidth) store_part<kWidth>(r, v, at(0, 0) + v);
  } else {
    constexpr int kWidth = Block::kNextA ? A : 1;
    CUTE_UNROLL
    for (int b = 0; b < B; ++b) {
      CUTE_UNROLL
      for (int a = 0; a < A; a += kWidth) store_part<kWidth>(r, a + A * b, at(a, b));
    }
  }
}

}  // namespace cutegen
