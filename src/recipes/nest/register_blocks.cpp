// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/register_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::recipes {
namespace {

constexpr int64_t kLeastInner = 32;  // elements: a warp writes 128 bytes of a line together
constexpr int64_t kMostElements = 64;

Move move_of(const Fused& fused, const Operand& operand, const Loop& loop) {
  return stride(fused, operand, loop).move;
}

// Returns the elements of a vector of 16 bytes, but at most 8.
int64_t vector_of(size_t bytes) {
  return std::min<int64_t>(16 / int64_t(bytes), 8);
}

// Whether the kernel can address all operands by strides alone.
bool only_strides(const Fused& fused, const Nest& nest) {
  const auto plain = [](const Operand& operand) {
    return !operand.counts && !operand.sliced() && !operand.gathered();
  };
  return nest.kept.size() > 1 && std::all_of(fused.inputs.begin(), fused.inputs.end(), plain) &&
         std::all_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
           return plain(output.operand) &&
                  move_of(fused, output.operand, nest.kept.back()) == Move::next;
         });
}

// Returns the widest dtype, in bytes, of the inputs that are contiguous along `loop` but not along
// the innermost loop, or 0 if no input is. Vectors of an input without the innermost axis help only
// if this axis is short.
size_t bytes_along(const Fused& fused, const Nest& nest, size_t loop) {
  const bool dense = nest.kept.back().size <= kLongestDense;
  size_t bytes = 0;
  for (const Operand& operand : fused.inputs) {
    const Move inner = move_of(fused, operand, nest.kept.back());
    if (move_of(fused, operand, nest.kept[loop]) == Move::next &&
        (inner == Move::stride || (dense && inner == Move::none)))
      bytes = std::max(bytes, size_of(operand.dtype));
  }
  return bytes;
}

}  // namespace

bool contiguous_block(const Fused& fused, const Nest& nest, const Block& block,
                      const Operand& operand) {
  const Loop &inner = nest.kept.back(), &outer = nest.kept[size_t(block.loop)];
  if (move_of(fused, operand, inner) != Move::next) return false;
  const int first = position(operand, inner.axes.front()),
            last = position(operand, outer.axes.back());
  return first >= 0 && last == first - 1;
}

std::optional<Block> block_of(const Fused& fused, const Nest& nest) {
  if (!only_strides(fused, nest)) return std::nullopt;
  size_t written = 1;
  for (const FusedOutput& output : fused.outputs)
    written = std::max(written, size_of(output.operand.dtype));
  const int64_t inner = nest.kept.back().size;
  std::optional<Block> best;
  size_t most = 0;
  for (size_t loop = 0; loop + 1 < nest.kept.size(); ++loop) {
    const size_t bytes = bytes_along(fused, nest, loop);
    if (bytes <= most) continue;
    Block block{.loop = int(loop), .across = vector_of(written), .down = vector_of(bytes)};
    if (inner <= kLongestDense) block.across = inner, block.dense = true;
    while (block.down > 2 && block.across * block.down > kMostElements) block.down /= 2;
    const bool adjacent = loop + 2 == nest.kept.size();
    const auto contiguous = [&](const FusedOutput& output) {
      return contiguous_block(fused, nest, block, output.operand);
    };
    if (block.dense
            ? !adjacent || !std::all_of(fused.outputs.begin(), fused.outputs.end(), contiguous)
            : inner < kLeastInner || inner % block.across != 0)
      continue;
    if (nest.kept[loop].size % block.down != 0) continue;
    best = block, most = bytes;
  }
  return best;
}

std::string across_text(const Block& block, const std::string& inner) {
  if (block.dense) return fmt::format("{0} <= {1} ? {0} : 1", inner, kLongestDense);
  return fmt::format("{0} % {1} == 0 ? {1} : 1", inner, block.across);
}

std::string down_text(const Block& block, const std::string& inner, const std::string& outer) {
  const std::string whole = fmt::format("{0} % {1} == 0 ? {1} : 1", outer, block.down);
  if (!block.dense) return whole;
  return fmt::format("{} <= {} ? ({}) : 1", inner, kLongestDense, whole);
}

}  // namespace cutegen::recipes
