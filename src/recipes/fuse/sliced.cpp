// SPDX-License-Identifier: Apache-2.0
// Slices of a Builder: where a kernel begins to read, and how long the slice is.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/extents.h"
#include "recipes/fuse/operators.h"
#include "recipes/graph/reshape.h"
#include "recipes/views/slice_part.h"

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

// The view of a slice with the axis that the slice drops, if any.
View with_dropped_axis(const SlicePart& part, const View& view) {
  View inner{.axes = view.axes, .reshaped = {}, .starts = view.starts};
  inner.starts.resize(view.axes.size());
  if (!part.drops) return inner;
  inner.axes.insert(inner.axes.begin() + long(part.dim), -1);
  inner.starts.insert(inner.starts.begin() + long(part.dim), Start{});
  return inner;
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

// A bound of a slice as a plan expression; empty if the bound does not follow a size.
std::string bound_text(Builder& builder, const Node& node, size_t index) {
  NestWriter& nest = builder.nest();
  const SizeArgument* size = bound_of(node, index);
  const auto known =
      size && size->known() ? nest.fused().names.find(size->tensor) : nest.fused().names.end();
  if (known == nest.fused().names.end()) return "";
  SizeArgument renamed = *size;
  renamed.tensor = known->second;
  return renamed.text();
}

// The length of a part that split_with_sizes() returns: a size, or a number.
std::string length_text(Builder& builder, const Node& node, size_t item) {
  NestWriter& nest = builder.nest();
  for (SizeArgument size : node.sizes) {
    const auto known = nest.fused().names.find(size.tensor);
    if (size.item != int(item) + 1 || known == nest.fused().names.end()) continue;
    size.tensor = known->second;
    return size.text();
  }
  return std::to_string(argument(node, 1, "split_sizes").at(item).get<int64_t>());
}

// The length of the parts that split() or chunk() returns, if the last part may be shorter; nothing
// if all parts are equal.
std::optional<std::string> chunk_text(Builder& builder, const Node& node, const SlicePart& part,
                                      const std::string& from) {
  const std::string base = base_name(node.op);
  const Json length = argument(node, 1, "split_size");
  if ((base != "split" && base != "unsafe_split") || !length.is_number_integer())
    return std::nullopt;
  if (const std::string text = bound_text(builder, node, 1); !text.empty()) return text;
  const int64_t first = node.outputs.front().shape[part.dim],
                last = node.outputs.back().shape[part.dim];
  if (!part.by_number && first == last) return std::nullopt;
  const auto whole = builder.sizes().extent_of(from, part.dim);
  const auto of = [](const SizeArgument& size) { return size.index == 1 && size.share; };
  const bool share = std::any_of(node.sizes.begin(), node.sizes.end(), of);
  if (share && whole) return fmt::format("ceil_div({},{})", *whole, node.outputs.size());
  if (!part.by_number && whole)  // the axis has one size at all shapes of the task
    demand(builder.nest().fused(),
           fmt::format("{} == {}", *whole, builder.nest().shape_of(from)[part.dim]));
  return std::to_string(length.get<int64_t>());
}

// The length of a part of a split whose other parts have the length `chunk`.
std::string chunk_length(Builder& builder, const Node& node, size_t output, const SlicePart& part,
                         const std::string& from, const std::string& chunk) {
  if (output + 1 < node.outputs.size()) return chunk;
  const auto whole = builder.sizes().extent_of(from, part.dim);
  return whole ? fmt::format("({}-{}*{})", *whole, chunk, output) : "";
}

// Where a part of an axis of `from` begins. `along`: the elements that the kernel reads.
Result<Start> start_of_slice(Builder& builder, const Node& node, size_t output,
                             const SlicePart& part, const std::string& from, int64_t length,
                             int64_t along) {
  NestWriter& nest = builder.nest();
  const int64_t size = nest.shape_of(from)[part.dim];
  if (splits_by_sizes(node)) {
    std::string text = "0";
    for (size_t i = 0; i < output; ++i) text += "+" + length_text(builder, node, i);
    return Start{.at = part.at, .by_number = true, .from = text};
  }
  if (const auto chunk = chunk_text(builder, node, part, from))
    return Start{.at = part.at,
                 .by_number = true,
                 .from = fmt::format("{}*{}", *chunk, output),
                 .length = chunk_length(builder, node, output, part, from, *chunk)};
  if (const std::string text = bound_text(builder, node, 2); !text.empty()) {
    if (part.at > 0) return Start{.at = part.at, .by_number = true, .from = text};
    demand(nest.fused(), text + " == 0");
  }
  if (part.raw < 0) return Start{.at = part.at, .from_end = size - part.at, .by_number = true};
  if (part.drops || part.at == 0) return Start{.at = part.at, .by_number = part.by_number};
  const int64_t multiple = part.at % length == 0 ? part.at / length : 0;
  if (part.by_number || multiple == 0 || along == length)
    return Start{.at = part.at, .multiple = multiple, .by_number = part.by_number};
  // The kernel reads only some elements of one of several equal parts.
  const auto whole = builder.sizes().extent_of(from, part.dim);
  if (!whole || size % length != 0) return nest.cut_at(node, node.op + ": a slice of a part");
  demand(nest.fused(), fmt::format("({}) % {} == 0", *whole, size / length));
  return Start{.at = part.at, .from = fmt::format("({})/{}*{}", *whole, size / length, multiple)};
}

// The length of x[:, 2:], x[:, 1:-1] or x[:, :n - 5] as an expression. A length between two numbers
// is fixed.
void show_slice(Builder& builder, const Node& node, const SlicePart& part, const std::string& from,
                const View& view) {
  NestWriter& nest = builder.nest();
  const int axis = part.drops ? -1 : view.axes[part.dim];
  const std::string base = base_name(node.op), end_size = bound_text(builder, node, 3),
                    start_size = bound_text(builder, node, 2);
  if (axis < 0 || (base != "slice" && base != "narrow")) return;
  std::string& shown = nest.fused().axes[size_t(axis)].shown;
  if (base == "narrow") {
    if (!end_size.empty()) shown = end_size;
    return;
  }
  const Json end = argument(node, 3, "end");
  const auto whole = builder.sizes().extent_of(from, part.dim);
  const int64_t size = nest.shape_of(from)[part.dim];
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

}  // namespace

// A slice moves where the kernel reads its input.
Result<int> build_slice(Builder& builder, const Node& node, size_t output, const View& view) {
  NestWriter& nest = builder.nest();
  const std::string& name = node.outputs[output].name;
  const auto from = reference(argument(node, 0, "self"));
  if (!from) return unsupported_error(node.op + ": its input is not a tensor", node.id);
  const Shape shape = nest.shape_of(*from);
  const auto part = part_of(node, output, shape);
  if (!part) return unsupported_error("no recipe covers this use of " + node.op, node.id);
  const int64_t length = part->drops ? 1 : node.outputs[output].shape[part->dim];
  auto whole = view.reshaped ? before_slice(*part, length, shape, view) : std::nullopt;
  if (whole && nest.region().slices) return builder.value(*from, *whole);
  const auto copied = [&](const char* why) {
    nest.cut_before(name);
    return unsupported_error(node.op + why, node.id);
  };
  if (!nest.region().slices || view.reshaped)
    return copied(": a slice that has to be copied first");
  View inner = with_dropped_axis(*part, view);
  Start& start = inner.starts[part->dim];
  const bool moved = start.at > 0 || !start.from.empty();
  if (start.index >= 0 || start.step > 1 || (part->step > 1 && moved))
    return copied(": a part of its elements is read");
  if (part->step > 1) {
    start = {.at = part->at, .step = part->step};
    return builder.value(*from, inner);
  }
  const int axis = inner.axes[part->dim];
  const int64_t along = axis < 0 ? 1 : nest.fused().axes[size_t(axis)].size;
  CG_TRY(Start own,
         start_of_slice(builder, node, output, *part, *from, std::max<int64_t>(1, length), along));
  const SizeArgument* end = bound_of(node, 3);
  own.open_end = start.open_end || (end && !end->known());
  if (moved && !(is_fixed(start) && is_fixed(own))) return copied(": a slice of a slice");
  if (moved) own = {.at = start.at + part->at, .open_end = own.open_end};
  start = std::move(own);
  if (axis >= 0 && !start.length.empty()) nest.fused().axes[size_t(axis)].shown = start.length;
  if (splits_by_sizes(node) && view.axes[part->dim] >= 0)
    nest.fused().axes[size_t(view.axes[part->dim])].shown = length_text(builder, node, output);
  show_slice(builder, node, *part, *from, view);
  return builder.value(*from, inner);
}

}  // namespace cutegen::recipes
