// SPDX-License-Identifier: Apache-2.0
// Views and fills of a Builder.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/extents.h"
#include "recipes/fuse/operators.h"
#include "recipes/fuse/views.h"
#include "recipes/graph/permutation.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostPieces = 8;  // a larger number is probably a size of the task

// Whether a slice takes one part along some axes of `shape` and all elements along the others. The
// module fixes the number of parts, so the plan may require it.
bool takes_parts(const Fused& fused, const View& view, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const Start& start = view.starts[i];
    const int64_t length = view.axes[i] < 0 ? 1 : fused.axes[size_t(view.axes[i])].size;
    if (start.index >= 0 || start.step > 1) return false;
    if (length != shape[i] && (length > 1 || shape[i] > kMostPieces)) return false;
  }
  return true;
}

// If n tensors are stacked along a new axis, which a reshape then merges with the axis before it,
// every n-th element comes from the same tensor.
Result<int> read_interleaved(Builder& builder, const Node& node, const std::string& from,
                             const View& view) {
  NestWriter& nest = builder.nest();
  const Node* stack = nest.graph().producer(from);
  const auto turns = stack ? stacked(*stack) : std::nullopt;
  const bool merged = turns && !nest.region().kept.count(from) &&
                      node.outputs[0].shape == merged_turns(*turns, stack->outputs[0].shape);
  const Start start = merged ? view.starts[turns->axis - 1] : Start{};
  if (!merged || start.step != turns->count || start.index >= 0)
    return nest.cut_at(node, "a slice of a reshaped value");
  View inner = view;
  inner.starts[turns->axis - 1] = {};
  return builder.value(*reference(argument(*stack, 0, "tensors")[size_t(start.at)]), inner);
}

// A reshape may add and drop axes of size 1. Other reshapes need a whole contiguous tensor.
Result<int> read_reshaped(Builder& builder, const Node& node, const std::string& from,
                          const View& view) {
  NestWriter& nest = builder.nest();
  Shape shape = nest.shape_of(from);
  const Shape& to = node.outputs.front().shape;
  if (view.reshaped) return builder.value(from, view);
  std::vector<size_t> axes_before, axes_after;  // axes that are not of size 1
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes_before.push_back(i);
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] != 1) axes_after.push_back(i);
  bool same = axes_before.size() == axes_after.size();
  for (size_t i = 0; same && i < axes_before.size(); ++i)
    same = shape[axes_before[i]] == to[axes_after[i]];
  if (!same && !view.starts.empty() && takes_parts(nest.fused(), view, to))
    return builder.value(from, {.axes = view.axes, .reshaped = to, .starts = view.starts});
  if (!same && !view.starts.empty()) return read_interleaved(builder, node, from, view);
  if (!same) return builder.value(from, {.axes = view.axes, .reshaped = to});
  View inner{.axes = std::vector<int>(shape.size(), -1), .reshaped = {}};
  if (!view.starts.empty()) inner.starts.resize(shape.size());
  for (size_t i = 0; i < axes_before.size(); ++i) {
    inner.axes[axes_before[i]] = view.axes[axes_after[i]];
    if (!view.starts.empty()) inner.starts[axes_before[i]] = view.starts[axes_after[i]];
  }
  return builder.value(from, inner);
}

// Reads torch.tensor() of a Python number.
Result<int> lifted_number(Builder& builder, const Node& node) {
  NestWriter& nest = builder.nest();
  for (const SizeArgument& of : node.sizes)
    if (of.index == 0 && of.known()) return builder.sizes().size_of(of);
  auto made = number(argument(node, 0, "self"));
  if (!made) return unsupported_error(node.op + ": its value is not a number", node.id);
  return nest.constant(literal(*made));
}

}  // namespace

// cutegen.blocks(x, filter)
Result<int> build_blocks(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  if (view.reshaped || !view.starts.empty())
    return nest.cut_at(node, "a part or a reshape of blocks");
  const auto x = reference(argument(node, 0, "")), filter = reference(argument(node, 1, ""));
  const Shape& to = node.outputs.front().shape;
  const auto show = [&](size_t place, const std::string& extent) {
    if (view.axes[place] < 0) return;
    std::string& known = nest.fused().axes[size_t(view.axes[place])].extent;
    if (known.empty()) known = extent;
  };
  for (size_t axis = 2; 2 * axis - 1 < to.size(); ++axis) {
    const std::string size = fmt::format("@{}", axis);
    CG_TRY(const std::string whole, builder.sizes().with_sizes(*x, size));
    CG_TRY(const std::string block, builder.sizes().with_sizes(*filter, size));
    show(2 * axis - 2, fmt::format("({}/max(1,{}))", whole, block));
    show(2 * axis - 1, block);
    demand(nest.fused(), fmt::format("{} % max(1,{}) == 0", whole, block));
  }
  return builder.value(*x, {.axes = view.axes, .reshaped = to});
}

// A view changes where the kernel reads a value, not the value.
Result<std::optional<int>> build_view(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  std::optional<int> none;
  if (node.op.rfind("aten.", 0) != 0 || node.outputs.empty()) return none;
  std::string base = base_name(node.op);
  const Shape& to = node.outputs.front().shape;
  if (is_fill(node)) {
    const Fill fill = fill_of(node);
    builder.sizes().show_sizes(node, view);
    if (!fill.value) return unsupported_error(node.op + ": its value is not a number", node.id);
    for (const SizeArgument& of : node.sizes)
      if (of.index == fill.argument && of.item == 0 && of.known()) {
        CG_TRY(int inst, builder.sizes().size_of(of));
        return std::optional<int>(inst);
      }
    return std::optional<int>(nest.constant(literal(*fill.value)));
  }
  if (!is_view(node)) return none;
  const bool keeps = keeps_order(node);
  auto from = reference(argument(node, 0, "self"));
  if (!from && base.starts_with("lift_fresh")) {
    CG_TRY(int inst, lifted_number(builder, node));
    return std::optional<int>(inst);
  }
  if (!from) return unsupported_error(node.op + ": its input is not a tensor", node.id);
  Shape shape = nest.shape_of(*from);
  builder.sizes().show_sizes(node, view);
  if (shape == to && (keeps || permutation(node, base, to.size()).empty())) {
    CG_TRY(int inst, builder.value(*from, view));
    return std::optional<int>(inst);
  }
  auto order = permutation(node, base, shape.size());
  if (view.reshaped && moves_ones_only(order, shape)) {  // keeps the order of the elements
    CG_TRY(int inst, builder.value(*from, view));
    return std::optional<int>(inst);
  }
  View inner;
  if (view.reshaped && base == "expand") {
    auto seen = broadcast_reshaped(shape, to, view);
    if (!seen) return nest.cut_at(node, "a reshape of an expanded result");
    inner = *seen;
  } else if (view.reshaped && !order.empty()) {
    return nest.cut_at(node, "a reshape of a transposed result");
  } else if (base == "expand") {
    inner = broadcast(shape, to, view);
  } else if (!order.empty()) {
    inner.axes.resize(shape.size());
    inner.starts.resize(view.starts.size());
    for (size_t i = 0; i < order.size(); ++i) inner.axes[order[i]] = view.axes[i];
    for (size_t i = 0; i < view.starts.size(); ++i) inner.starts[order[i]] = view.starts[i];
  } else {
    CG_TRY(int inst, read_reshaped(builder, node, *from, view));
    return std::optional<int>(inst);
  }
  CG_TRY(int inst, builder.value(*from, inner));
  return std::optional<int>(inst);
}

}  // namespace cutegen::recipes
