// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/slice_part.h"

#include <algorithm>

#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// Every step-th element, from an element of the first step on. The step must divide the axis.
std::optional<SlicePart> every(const Node& node, SlicePart part, const Json& step, int64_t size) {
  const Json end = argument(node, 3, "end");
  part.step = step.is_number_integer() ? step.get<int64_t>() : 0;
  part.at = part.raw;
  part.by_number = false;
  const bool whole = end.is_null() || (end.is_number_integer() && end.get<int64_t>() >= size);
  const bool fits = part.step > 1 && part.raw >= 0 && part.raw < part.step && whole;
  return fits && size % part.step == 0 ? std::optional(part) : std::nullopt;
}

// Whether slice() or narrow() gives one of several equal parts of its axis at every size.
bool is_equal_part(const Node& node, int64_t at, const Shape& part, const Shape& whole,
                   size_t dim) {
  if (part.size() != whole.size() || part[dim] < 1 || whole[dim] % part[dim] != 0) return false;
  const auto follows = [&](size_t index) {
    return std::any_of(node.sizes.begin(), node.sizes.end(),
                       [&](const SizeArgument& of) { return of.share && of.index == index; });
  };
  const Json end = argument(node, 3, "end");
  const bool to_end = base_name(node.op) == "slice" &&
                      (end.is_null() || (end.is_number_integer() && end > whole[dim]));
  return at % part[dim] == 0 && (at == 0 || follows(2)) && (follows(3) || (to_end && follows(2)));
}

}  // namespace

std::optional<SlicePart> part_of(const Node& node, size_t output, const Shape& shape) {
  const std::string base = base_name(node.op);
  const bool one = base == "part",
             pieces = !one && base != "slice" && base != "narrow" && base != "select";
  const Json dim = argument(node, pieces && base != "unbind" ? 2 : 1, "dim");
  const auto axis = integer(dim.is_null() ? Json(0) : dim, shape.size());
  if (!axis) return std::nullopt;
  SlicePart part{.dim = size_t(*axis),
                 .drops = base == "select" || base == "unbind",
                 .by_number = !pieces && !one};
  if (one) {
    part.raw = part.at =
        argument(node, 2, "").get<int64_t>() * node.outputs.front().shape[part.dim];
    return part;
  }
  if (pieces) {
    // split(8) gives parts of eight elements at every size, chunk(8) eight parts.
    part.by_number = std::any_of(node.sizes.begin(), node.sizes.end(), [](const SizeArgument& of) {
      return of.index == 1 && of.item == 0 && !of.share;
    });
    for (size_t i = 0; i < output; ++i) part.at += part.drops ? 1 : node.outputs[i].shape[part.dim];
    part.raw = part.at;
    return part;
  }
  const Json start = argument(node, 2, base == "select" ? "index" : "start"),
             step = base == "slice" ? argument(node, 4, "step") : Json(1);
  if (!(start.is_null() || start.is_number_integer())) return std::nullopt;
  part.raw = start.is_null() ? 0 : start.get<int64_t>();
  if (step != 1) return every(node, part, step, shape[part.dim]);
  part.at = std::max<int64_t>(0, part.raw < 0 ? part.raw + shape[part.dim] : part.raw);
  if (is_equal_part(node, part.at, node.outputs.front().shape, shape, part.dim))
    part.by_number = false;
  return part.at < std::max<int64_t>(1, shape[part.dim]) ? std::optional(part) : std::nullopt;
}

}  // namespace cutegen::recipes
