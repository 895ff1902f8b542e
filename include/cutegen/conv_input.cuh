// SPDX-License-Identifier: Apache-2.0
// What a convolution on tensor cores reads: the input, a tile, and numbers as they are multiplied.
//
// Contract: ConvInput describes one input, ConvTile one tile of results. conv_term() rounds a number to
// what wgmma multiplies: tf32 for floats, in one or two terms.
//
// Example: ConvInput<float> input{x, image_stride, channel_stride, channels, {1, h, w}, {0, w, 1}};
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/tf32.cuh>

namespace cutegen {

// The input: channels and places of one image. Places are 32-bit offsets inside an image.
template <class Input>
struct ConvInput {
  Input const* data;
  int64_t image_stride;
  int channel_stride, channels;  // of a group
  int size[3], stride[3];
};

// A tile: its image, group and channels, the phase of the axes 0 and 1, its first result.
struct ConvTile {
  int64_t image;
  int group, channels, phase;
  int first[3];  // transposed: in steps of the stride
};

// What wgmma multiplies for an element type: floats pass as tf32.
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

// The high (0) or low (1) term of a number; halves have one. A NaN stays one in at least one term.
template <class Element>
CUTE_DEVICE Element conv_term(float x, int term) {
  if constexpr (cute::is_same_v<Element, float>)
    return tf32_operand(term == 0 ? x : x - tf32_high(x));
  else return Element(x);
}

}  // namespace cutegen
