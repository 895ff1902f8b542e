// SPDX-License-Identifier: Apache-2.0
// Describes the input of a convolution and a tile of its results, and rounds numbers for wgmma.
//
// Contract: ConvInput describes the input tensor, and ConvTile one tile of results. conv_term()
// rounds a number to the type that wgmma multiplies. conv_term() can also split a float into two
// tf32 terms, high and low.
//
// Example: ConvInput<float> input{x, image_stride, channel_stride, channels, {1, h, w}, {0, w, 1}};
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/tf32.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

// The input tensor has images, channels and up to three spatial axes. Offsets within an image must
// fit in 32 bits.
template <class Input>
struct ConvInput {
  Input const* data;
  int64_t image_stride;
  int channel_stride, channels;  // `channels` is the number of input channels of one group
  int size[3], stride[3];
};

// A ConvTile is a tile of results. `channels` is the index of the tile along the group's output
// channels. For a transposed convolution, `phase` combines the phases of axes 0 and 1: the
// remainders of the result's position modulo the stride.
struct ConvTile {
  int64_t image;
  int group, channels, phase;
  int first[3];  // position of the first result; a transposed convolution divides it by the stride
};

// Selects, for an element type, the type that wgmma multiplies (tf32 for float), and rounds to this
// type.
template <class Element>
struct ConvElement {
  using Mma = Element;
  static CUTE_DEVICE Element round(float x) { return Element(x); }
};
template <>
struct ConvElement<float> {
  using Mma = cute::tfloat32_t;
  static CUTE_DEVICE float round(float x) { return tf32_nearest(x); }
};

// Returns the high part (term 0) or the low part (term 1) of a float. 16-bit elements have only
// term 0. If x is NaN, at least one of its terms is NaN.
template <class Element>
CUTE_DEVICE Element conv_term(float x, int term) {
  if constexpr (cute::is_same_v<Element, float>)
    return tf32_operand(term == 0 ? x : x - tf32_high(x));
  else return Element(x);
}

// Converts an element in memory to a term, as conv_term() does for a float. 16-bit elements need no
// conversion.
template <class Element, class Input>
CUTE_DEVICE Element conv_element(Input x, int term) {
  if constexpr (cute::is_same_v<Element, Input> && sizeof(Input) == 2) return x;
  else return conv_term<Element>(to_float(x), term);
}

}  // namespace cutegen
