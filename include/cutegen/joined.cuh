// SPDX-License-Identifier: Apache-2.0
// Reads several tensors as one that joins them along an axis, as torch.cat() does.
//
// Contract: joined(places, ends, tensors...) returns an object that a kernel indexes like a CuTe
// tensor, by (element of a vector, step). places(0, j) is the position of the vector at step j along
// the joined axis (cutegen::positions). The tensors must have the same type. Tensor n has the
// positions from ends.at[n - 1] up to ends.at[n], and must begin so that positions of the joined
// axis address its elements. All elements of a vector must lie in one tensor.
//
// Example: auto g = joined(places, ends<int>(size_of_x), gX, gY); load_pack(g(_, j), pack);
#pragma once

#include <cutegen/vec.cuh>

namespace cutegen {

// Where each tensor but the last ends. The type Int, int or int64_t, counts positions.
template <class Int, int N>
struct Ends {
  Int at[N];
};
template <class Int, class... Sizes>
CUTE_DEVICE Ends<Int, int(sizeof...(Sizes))> ends(Sizes... sizes) {
  return {{Int(sizes)...}};
}

template <class Int, int N, class Places, class Tensor>
struct Joined {
  Places places;
  Ends<Int, N> ends;
  Tensor tensors[N + 1];

  template <class Element, class Step>
  CUTE_DEVICE decltype(auto) operator()(Element const& element, Step const& step) const {
    const Int place = Int(places(0, step));
    Tensor from = tensors[N];
    CUTE_UNROLL
    for (int n = N - 1; n >= 0; --n)
      if (place < ends.at[n]) from = tensors[n];
    return from(element, step);
  }
};

template <class Int, int N, class Places, class Tensor, class... Tensors>
CUTE_DEVICE Joined<Int, N, Places, Tensor> joined(Places const& places, Ends<Int, N> const& ends,
                                                  Tensor const& first, Tensors const&... others) {
  static_assert(sizeof...(others) == N);
  return {places, ends, {first, others...}};
}

}  // namespace cutegen
