// SPDX-License-Identifier: Apache-2.0
// The input of a convolution on tensor cores, the tile to compute, and the rounding for wgmma.
//
// Contract: ConvInput describes the input, ConvTile one tile of results. conv_term() rounds a number to
// the type that wgmma multiplies: floats to tf32, in one term or two.
//
// Example: ConvInput<float> input{x, image_stride, channel_stride, channels, {1, h, w}, {0, w, 1}};
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/tf32.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

// The input tensor: images, channels and up to three axes. Offsets within an image have 32 bits.
template <class Input>
struct ConvInput {
  Input const* data;
  int64_t image_stride;
  int channel_stride, channels;  // channels: number of channels of one group
  int size[3], stride[3];
};

// A tile of results. channels: the index of the tile of output channels within the group. phase:
// for a transposed convolution, the index of the phase of axes 0 and 1.
struct ConvTile {
  int64_t image;
  int group, channels, phase;
  int first[3];  // the first result; in a transposed convolution, counted in steps of the stride
};

// For an element type: the type that wgmma multiplies, and the rounding to it. Floats become tf32.
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

// The high (term 0) or low (term 1) part of a float; 16-bit elements have one term. If x is NaN, at
// least one of its terms is NaN.
template <class Element>
CUTE_DEVICE Element conv_term(float x, int term) {
  if constexpr (cute::is_same_v<Element, float>)
    return tf32_operand(term == 0 ? x : x - tf32_high(x));
  else return Element(x);
}

// The same for an element in memory. 16-bit elements stay as they are.
template <class Element, class Input>
CUTE_DEVICE Element conv_element(Input x, int term) {
  if constexpr (cute::is_same_v<Element, Input> && sizeof(Input) == 2) return x;
  else return conv_term<Element>(to_float(x), term);
}

}  // namespace cutegen
