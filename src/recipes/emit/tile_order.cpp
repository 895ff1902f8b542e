// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/tile_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kShortLine = 64;  // elements: a CTA has enough neighbours along other loops
constexpr int64_t kLeastTurned = 16;
constexpr int64_t kTileElements = 32;  // along the innermost loop

}  // namespace

int turned_loop(const Fused& fused, const Nest& nest) {
  const Loop& inner = nest.kept.back();
  const auto next = [&](const Operand& operand, const Loop& loop) {
    return stride(fused, operand, loop).move == Move::next;
  };
  if (inner.size <= kShortLine ||
      std::any_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
        return output.operand.gathered() || !next(output.operand, inner);
      }))
    return -1;
  int best = -1;
  size_t most = 0;
  for (size_t loop = 0; loop + 1 < nest.kept.size(); ++loop) {
    if (nest.kept[loop].size < kLeastTurned) continue;
    size_t bytes = 0;
    for (const Operand& operand : fused.inputs)
      if (!operand.counts && !operand.gathered() && next(operand, nest.kept[loop]) &&
          stride(fused, operand, inner).move == Move::stride)
        bytes += size_of(operand.dtype);
    if (bytes > most) best = int(loop), most = bytes;
  }
  return best;
}

std::string tile_order_text(const Nest& nest, int turned, const std::string& inner,
                            const std::vector<std::string>& inverses) {
  const std::string order = fmt::format("{}, {}", nest.kept.size() - 1 - size_t(turned), inner);
  return fmt::format(
      "\n  // Threads take vectors in tiles, so that a CTA uses most of each sector of operands "
      "that "
      "are\n"
      "  // contiguous along another axis. Beyond an edge, place() is the nearest vector.\n"
      "  const Index vectors = cutegen::vectors_in_tiles<{0}>(shape);\n"
      "  auto find = [&](Index at) {{ return cutegen::tile_coordinates<{0}>(at, shape, {1}); }};\n"
      "  auto place = [&](Index at) {{ return cutegen::nearest(find(at), shape); }};\n"
      "  auto inside = [&](Index at) {{ return elem_less(find(at), shape); }};",
      order, join(inverses, ", "));
}

std::string inner_vectors(const std::string& width) {
  return fmt::format("{} / {}", kTileElements, width);
}

std::vector<std::string> tile_extents(const std::vector<std::string>& sizes, int turned,
                                      const std::string& inner) {
  std::vector<std::string> list = sizes;
  list.back() = fmt::format("ceil_div({},{})", sizes.back(), inner);
  list[size_t(turned)] =
      fmt::format("ceil_div({},{}/({}))", sizes[size_t(turned)], kTileVectors, inner);
  return list;
}

}  // namespace cutegen::recipes
