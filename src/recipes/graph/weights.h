// SPDX-License-Identifier: Apache-2.0
// Packed weights: recognises a matrix that the graph unpacks from a tensor of 8-bit or 4-bit
// elements, so that a product's kernel may read the packed tensor itself.
//
// Contract: packed_weights() recognises (w - zero) * scale, with casts and reshapes between the
// steps. w is a tensor of int8, uint8 or 8-bit floats, or of bytes that hold two numbers of 4 bits
// each (`torch.stack([w & 15, w >> 4], -1)`). The scale is a tensor with one value for all weights,
// for each row, or for each block of rows and of the depth (the axis that the product sums over).
// The zero is a constant or such a tensor.
//
// Example: w.to(x.dtype) * s[:, None] -> tensor w, scales in blocks of 1 row and the whole depth
#pragma once

#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// A tensor with one value for each block of `rows` x `depth` weights. If `rows` or `depth` is 0, a
// block has all rows or the whole depth.
struct WeightGrid {
  std::string tensor;
  DType dtype = DType::f32;
  int64_t rows = 0, depth = 0;
};

struct PackedWeights {
  std::string tensor;  // [rows, depth], or [rows, depth / 2] with nibbles
  DType dtype = DType::i8;
  bool nibbles = false;     // each byte holds two 4-bit numbers
  bool high_first = false;  // the high bits of a byte hold its first number
  double zero = 0;
  std::optional<WeightGrid> scales, zeros;
};

std::optional<PackedWeights> packed_weights(const Graph& graph, const std::string& value);

}  // namespace cutegen::recipes
