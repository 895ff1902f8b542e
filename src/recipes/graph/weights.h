// SPDX-License-Identifier: Apache-2.0
// Packed weights: a matrix that a graph computes from a tensor of 8-bit or 4-bit elements, so that
// a product may read that tensor itself.
//
// Contract: packed_weights() recognises (w - zero) * scale in any order of casts and reshapes, if w
// is a tensor of int8, uint8 or 8-bit floats, or of bytes that hold two numbers of 4 bits
// (`torch.stack([w & 15, w >> 4], -1)`). Scales are tensors: one for all weights, for each row, or
// for blocks of rows and of the depth. Zeros are a constant or such a tensor.
//
// Example: w.to(x.dtype) * s[:, None] -> tensor w, scales in blocks of 1 row and the whole depth
#pragma once

#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// A value for each block of `rows` x `depth` weights; 0: the block has all rows, or all of the
// depth.
struct WeightGrid {
  std::string tensor;
  DType dtype = DType::f32;
  int64_t rows = 0, depth = 0;
};

struct PackedWeights {
  std::string tensor;  // [rows, depth], or [rows, depth / 2] if it holds nibbles
  DType dtype = DType::i8;
  bool nibbles = false;     // two in a byte
  bool high_first = false;  // the first one in the high bits
  double zero = 0;
  std::optional<WeightGrid> scales, zeros;
};

std::optional<PackedWeights> packed_weights(const Graph& graph, const std::string& value);

}  // namespace cutegen::recipes
