// SPDX-License-Identifier: Apache-2.0
// Slices of a Builder: where a kernel begins to read, and how long the slice is.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/reshape.h"
#include "recipes/nest/builder.h"
#include "recipes/nest/extents.h"

namespace cutegen::recipes {
namespace {

// The size that bounds a slice, if the worker found one: the start is argument 2, the end or length
// argument 3.
const SizeArgument* bound_of(const Node& node, size_t index) {
  const auto found =
      std::find_if(node.sizes.begin(), node.sizes.end(), [&](const SizeArgument& size) {
        return size.index == index && size.item == 0 && !size.share;
      });
  return found == node.sizes.end() ? nullptr : &*found;
}

// A tensor of `shape` consists of equal parts along an axis, and `view` reshapes one of them.
// Returns the same reshape of the whole tensor, in which the number of the part is an axis of its
// own. Returns nothing if the reshape merges the part's axis with the axes before it.
std::optional<View> before_slice(const SlicePart& part, int64_t length, const Shape& shape,
                                 const View& view) {
  const int64_t size = shape[part.dim];
  if (part.by_number || part.step > 1 || length < 1 || size % length != 0 || part.at % length != 0)
    return std::nullopt;
  const int64_t before = product(Shape(shape.begin(), shape.begin() + long(part.dim)));
  size_t axis = 0;
  for (int64_t seen = 1; seen != before || before == 0; ++axis) {
    if (axis == view.reshaped->size() || before % std::max<int64_t>(1, seen) != 0)
      return std::nullopt;
    seen *= (*view.reshaped)[axis];
  }
  View whole = view;
  whole.starts.resize(view.axes.size());
  whole.axes.insert(whole.axes.begin() + long(axis), -1);
  whole.reshaped->insert(whole.reshaped->begin() + long(axis), size / length);
  whole.starts.insert(whole.starts.begin() + long(axis), Start{.at = part.at / length});
  return whole;
}

// Whether the lengths of the parts follow sizes.
bool splits_by_sizes(const Node& node) {
  return base_name(node.op).ends_with("split_with_sizes") &&
         std::any_of(node.sizes.begin(), node.sizes.end(),
                     [](const SizeArgument& size) { return size.item > 0; });
}

// Whether a slice begins at the same element at all sizes.
bool is_fixed(const Start& start) {
  return start.from.empty() && start.from_end == 0 && (start.multiple == 0 || start.by_number);
}

}  // namespace

// A bound of a slice as a plan expression; empty if the bound does not follow a size.
std::string Builder::bound_text(const Node& node, size_t index) const {
  const SizeArgument* size = bound_of(node, index);
  const auto known = size && size->known() ? fused_.names.find(size->tensor) : fused_.names.end();
  if (known == fused_.names.end()) return "";
  SizeArgument renamed = *size;
  renamed.tensor = known->second;
  return renamed.text();
}

// The length of a part that split_with_sizes() returns: a size, or a number.
std::string Builder::length_text(const Node& node, size_t item) const {
  for (SizeArgument size : node.sizes) {
    const auto known = fused_.names.find(size.tensor);
    if (size.item != int(item) + 1 || known == fused_.names.end()) continue;
    size.tensor = known->second;
    return size.text();
  }
  return std::to_string(argument(node, 1, "split_sizes").at(item).get<int64_t>());
}

// Where a part of an axis of `from` begins. `along`: the elements that the kernel reads.
Result<Start> Builder::start_of(const Node& node, size_t output, const SlicePart& part,
                                const std::string& from, int64_t length, int64_t along) {
  const int64_t size = shape_of(from)[part.dim];
  if (splits_by_sizes(node)) {
    std::string text = "0";
    for (size_t i = 0; i < output; ++i) text += "+" + length_text(node, i);
    return Start{.at = part.at, .by_number = true, .from = text};
  }
  if (const std::string text = bound_text(node, 2); !text.empty()) {
    if (part.at > 0) return Start{.at = part.at, .by_number = true, .from = text};
    demand(fused_, text + " == 0");
  }
  if (part.raw < 0) return Start{.at = part.at, .from_end = size - part.at, .by_number = true};
  if (part.drops || part.at == 0) return Start{.at = part.at, .by_number = part.by_number};
  const int64_t multiple = part.at % length == 0 ? part.at / length : 0;
  if (part.by_number || multiple == 0 || along == length)
    return Start{.at = part.at, .multiple = multiple, .by_number = part.by_number};
  // The kernel reads only some elements of one of several equal parts.
  const auto whole = extent_of(from, part.dim);
  if (!whole || size % length != 0) return cut_at(node, node.op + ": a slice of a part");
  demand(fused_, fmt::format("({}) % {} == 0", *whole, size / length));
  return Start{.at = part.at, .from = fmt::format("({})/{}*{}", *whole, size / length, multiple)};
}

// A slice moves where the kernel reads its input.
Result<int> Builder::sliced(const Node& node, size_t output, const View& view) {
  const std::string& name = node.outputs[output].name;
  const auto from = reference(argument(node, 0, "self"));
  if (!from) return unsupported_error(node.op + ": its input is not a tensor", node.id);
  const Shape shape = shape_of(*from);
  const auto part = part_of(node, output, shape);
  if (!part) return unsupported_error("no recipe covers this use of " + node.op, node.id);
  const int64_t length = part->drops ? 1 : node.outputs[output].shape[part->dim];
  auto whole = view.reshaped ? before_slice(*part, length, shape, view) : std::nullopt;
  if (whole && region_.slices) return value(*from, *whole);
  const auto copied = [&](const char* why) {
    if (cut_.empty()) cut_ = name;
    return unsupported_error(node.op + why, node.id);
  };
  if (!region_.slices || view.reshaped) return copied(": a slice that has to be copied first");
  View inner{.axes = view.axes, .reshaped = {}, .starts = view.starts};
  inner.starts.resize(view.axes.size());
  if (part->drops) {
    inner.axes.insert(inner.axes.begin() + long(part->dim), -1);
    inner.starts.insert(inner.starts.begin() + long(part->dim), Start{});
  }
  Start& start = inner.starts[part->dim];
  const bool moved = start.at > 0 || !start.from.empty();
  if (start.index >= 0 || start.step > 1 || (part->step > 1 && moved))
    return copied(": a part of its elements is read");
  if (part->step > 1) {
    start = {.at = part->at, .step = part->step};
    return value(*from, inner);
  }
  const int axis = inner.axes[part->dim];
  const int64_t along = axis < 0 ? 1 : fused_.axes[size_t(axis)].size;
  CG_TRY(Start own, start_of(node, output, *part, *from, std::max<int64_t>(1, length), along));
  const SizeArgument* end = bound_of(node, 3);
  own.open_end = start.open_end || (end && !end->known());
  if (moved && !(is_fixed(start) && is_fixed(own))) return copied(": a slice of a slice");
  if (moved) own = {.at = start.at + part->at, .open_end = own.open_end};
  start = std::move(own);
  if (splits_by_sizes(node) && view.axes[part->dim] >= 0)
    fused_.axes[size_t(view.axes[part->dim])].shown = length_text(node, output);
  show_slice(node, *part, *from, view);
  return value(*from, inner);
}

// If n tensors are stacked along a new axis, which a reshape then merges with the axis before it,
// every n-th element comes from the same tensor.
Result<int> Builder::interleaved(const Node& node, const std::string& from, const View& view) {
  const Node* stack = graph_.producer(from);
  const auto turns = stack ? stacked(*stack) : std::nullopt;
  const bool merged = turns && !region_.kept.count(from) &&
                      node.outputs[0].shape == merged_turns(*turns, stack->outputs[0].shape);
  const Start start = merged ? view.starts[turns->axis - 1] : Start{};
  if (!merged || start.step != turns->count || start.index >= 0)
    return cut_at(node, "a slice of a reshaped value");
  View inner = view;
  inner.starts[turns->axis - 1] = {};
  return value(*reference(argument(*stack, 0, "tensors")[size_t(start.at)]), inner);
}

// The length of x[:, 2:], x[:, 1:-1] or x[:, :n - 5] as an expression. A length between two numbers
// is fixed.
void Builder::show_slice(const Node& node, const SlicePart& part, const std::string& from,
                         const View& view) {
  const int axis = part.drops ? -1 : view.axes[part.dim];
  const std::string base = base_name(node.op), end_size = bound_text(node, 3),
                    start_size = bound_text(node, 2);
  if (axis < 0 || (base != "slice" && base != "narrow")) return;
  std::string& shown = fused_.axes[size_t(axis)].shown;
  if (base == "narrow") {
    if (!end_size.empty()) shown = end_size;
    return;
  }
  const Json end = argument(node, 3, "end");
  const auto whole = extent_of(from, part.dim);
  const int64_t size = shape_of(from)[part.dim];
  const int64_t last = end.is_number_integer() ? end.get<int64_t>() : size;
  const bool to_number = last >= 0 && last <= size && !end.is_null();
  std::string to = end_size;
  if (to.empty() && to_number && !start_size.empty()) to = std::to_string(last);
  if (to.empty() && (!whole || to_number)) return;
  if (to.empty()) to = last < 0 ? fmt::format("(({})-{})", *whole, -last) : *whole;
  if (!start_size.empty())
    shown = fmt::format("(({})-({}))", to, start_size);
  else if (part.raw >= 0)
    shown = fmt::format("(({})-{})", to, part.raw);
  else if (end_size.empty())
    shown = std::to_string(-part.raw + std::min<int64_t>(last, 0));
}

}  // namespace cutegen::recipes
