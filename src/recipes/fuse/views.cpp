// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/views.h"

#include <algorithm>
#include <string>
#include <vector>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

using Words = std::vector<std::string>;
// Views that keep the order of their elements, views that rearrange or reshape them, and operators
// that fill a tensor with one constant.
const Words kSameOrder{"alias",      "detach",          "clone", "contiguous",
                       "lift_fresh", "lift_fresh_copy", "expand"};
const Words kRearranging{
    "unsqueeze", "squeeze", "view",      "reshape", "_unsafe_view", "_reshape_alias", "flatten",
    "unflatten", "permute", "transpose", "t",       "numpy_T",      "swapaxes"};
const Words kSlices{"slice", "narrow",           "select",
                    "split", "split_with_sizes", "unbind",
                    "part",  "unsafe_split",     "unsafe_split_with_sizes"};
// Uninitialised tensors count as zeros, because nothing should read them.
const Words kFills{"full",       "ones",          "zeros",      "full_like", "ones_like",
                   "zeros_like", "scalar_tensor", "new_zeros",  "new_ones",  "new_full",
                   "new_empty",  "empty",         "empty_like", "fill",      "zero"};

const Words kZeroFills{"zeros",     "zeros_like", "new_zeros", "zero",
                       "new_empty", "empty",      "empty_like"};

bool contains(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool is_view(const Node& node) {
  std::string base = base_name(node.op);
  return contains(kSameOrder, base) || contains(kRearranging, base);
}

bool keeps_order(const Node& node) {
  return contains(kSameOrder, base_name(node.op));
}

bool is_slice(const Node& node) {
  const bool known = node.op.rfind("aten.", 0) == 0 || node.op == kPart;
  return known && contains(kSlices, base_name(node.op));
}

bool is_join(const Node& node) {
  const std::string base = base_name(node.op);
  return node.op.rfind("aten.", 0) == 0 && (base == "cat" || base == "stack");
}

std::optional<Stacked> stacked(const Node& node) {
  if (!is_join(node) || base_name(node.op) != "stack") return std::nullopt;
  const Json list = argument(node, 0, "tensors");
  const Json dim = argument(node, 1, "dim");
  const int64_t rank = int64_t(node.outputs[0].shape.size()),
                given = dim.is_null() ? 0 : dim.get<int64_t>(),
                axis = given < 0 ? given + rank : given;
  const bool tensors = std::all_of(list.begin(), list.end(),
                                   [](const Json& item) { return reference(item).has_value(); });
  if (axis < 1 || !tensors) return std::nullopt;
  return Stacked{.axis = size_t(axis), .count = int64_t(list.size())};
}

Shape merged_turns(const Stacked& turns, Shape shape) {
  shape[turns.axis - 1] *= turns.count;
  shape.erase(shape.begin() + long(turns.axis));
  return shape;
}

bool is_fill(const Node& node) {
  return contains(kFills, base_name(node.op));
}

bool is_like(const Node& node) {
  return is_fill(node) && base_name(node.op).ends_with("_like");
}

Fill fill_of(const Node& node) {
  const std::string base = base_name(node.op);
  const size_t place = base == "scalar_tensor" ? 0 : base == "new_full" ? 2 : 1;
  if (base.starts_with("ones") || base == "new_ones") return {.value = 1, .argument = place};
  if (contains(kZeroFills, base)) return {.value = 0, .argument = place};
  const char* keyword = base == "fill" ? "value" : "fill_value";
  return {.value = number(argument(node, place, keyword)), .argument = place};
}

}  // namespace cutegen::recipes
