// SPDX-License-Identifier: Apache-2.0
// Register blocks: an elementwise kernel in which a thread computes a two-dimensional block of
// elements, because an operand is contiguous along another loop than the outputs.
//
// Contract: the outputs are contiguous along the innermost loop. block_of() returns the loop along
// which the operand is contiguous (the operand's loop), and the block's size: `across` elements
// along the innermost loop, and `down` elements along the operand's loop. The thread reads the
// operand in vectors of `down` elements and writes the outputs in vectors of `across` elements. If
// the innermost loop is short (pixel shuffle, upsampling), the block contains all of it, and the
// thread writes the whole block in vectors of 16 bytes (`dense`). block_of() returns nullopt if
// such a block would not help, or if the sizes are not multiples of the vectors.
//
// Example: out[b, i, j] = x[b, j, i] in fp16 -> the loop of i, 8 x 8 elements
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/nest/nest.h"

namespace cutegen::recipes {

struct Block {
  int loop = 0;  // the operand's loop
  int64_t across = 1, down = 1;
  bool dense = false;
};

constexpr int64_t kLongestDense = 8;  // elements of an innermost loop that a thread can keep

std::optional<Block> block_of(const Fused& fused, const Nest& nest);
// Returns the block's size, as expressions of the launch plan, at a shape where the innermost loop
// has `inner` and the operand's loop has `outer` elements.
std::string across_text(const Block& block, const std::string& inner);
std::string down_text(const Block& block, const std::string& inner, const std::string& outer);
// Returns whether the operand's elements of a dense block are contiguous.
bool contiguous_block(const Fused& fused, const Nest& nest, const Block& block,
                      const Operand& operand);

}  // namespace cutegen::recipes
