// SPDX-License-Identifier: Apache-2.0
// Joins of a Builder: which operand of cat() or stack() an element comes from.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/operators.h"
#include "recipes/graph/permutation.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostChosen =
    8;  // operands of a join from which a kernel chooses for each element

// Chooses the operand of a joined tensor for each element by its position. The kernel reads every
// operand, at its nearest element if the position is outside the operand.
Result<int> build_choice(Builder& builder, const Node& node, const View& view, size_t axis) {
  NestWriter& nest = builder.nest();
  const Json list = argument(node, 0, "tensors");
  const bool stacks = base_name(node.op) == "stack";
  const bool plain = view.starts.empty() || view.starts[axis].at == 0;
  const int along = view.axes[axis];
  // Without reductions, a stage for each part of the output reads less.
  const bool reduces = std::any_of(nest.fused().axes.begin(), nest.fused().axes.end(),
                                   [](const Axis& a) { return a.reduced; });
  if (!nest.region().slices || !plain || !reduces || along < 0 || list.size() > kMostChosen)
    return nest.cut_at(node, node.op + ": one element would come from one of several operands");
  std::vector<int> values, ends;
  std::string before;
  const int place = nest.places(along, stacks ? std::to_string(list.size()) : "");
  for (const Json& item : list) {
    const auto name = reference(item);
    View inner = view;
    inner.starts.resize(view.axes.size());
    if (stacks) {
      inner.axes.erase(inner.axes.begin() + long(axis));
      inner.starts.erase(inner.starts.begin() + long(axis));
      if (view.starts.empty()) inner.starts.clear();
    } else {
      inner.axes[axis] = -1;
      inner.starts[axis] = {};
      inner.starts[axis].index = nest.fused().insts[size_t(place)].operand;
      inner.starts[axis].nearest = true;
      inner.starts[axis].shift = before.empty() ? "" : fmt::format("0-({})", before);
      const auto extent = builder.sizes().extent_of(*name, axis);
      if (!extent) {
        nest.cut_before(*name);
        return unsupported_error(node.op + ": an operand of unknown size", node.id);
      }
      before += (before.empty() ? "" : "+") + *extent;
    }
    CG_TRY(int value, builder.value(*name, inner));
    values.push_back(value);
    ends.push_back(stacks ? -1 : builder.sizes().size_along(along, before));
  }
  Axis& joined = nest.fused().axes[size_t(along)];
  if (joined.shown.empty() && joined.size == node.outputs.front().shape[axis])
    joined.shown = stacks ? std::to_string(list.size()) : "(" + before + ")";
  int result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    const Inst& kind = nest.fused().insts[size_t(result)];
    result = stacks ? nest.make("chosen", fmt::format("({{0}} <= {} ? {{1}} : {{2}})", i),
                                {place, values[i], result}, kind.boolean, kind.integer)
                    : nest.make("chosen", kPartOfJoin, {place, ends[i], values[i], result},
                                kind.boolean, kind.integer);
  }
  return result;
}

}  // namespace

// Reads a part of a joined tensor from the operand that it comes from.
Result<int> build_join(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  const Json list = argument(node, 0, "tensors");
  const auto dim = integer(argument(node, 1, "dim").is_null() ? Json(0) : argument(node, 1, "dim"),
                           node.outputs[0].shape.size());
  if (!list.is_array() || !dim || view.reshaped) return nest.cut_at(node, node.op + " is reshaped");
  const auto axis = size_t(*dim);
  if (!view.starts.empty() && (view.starts[axis].index >= 0 || view.starts[axis].step > 1))
    return nest.cut_at(node, node.op + ": a part of its elements is read");
  const bool stacks = base_name(node.op) == "stack";
  const int along = view.axes[axis];
  const int64_t length = along < 0 ? 1 : nest.fused().axes[size_t(along)].size,
                at = view.starts.empty() ? 0 : view.starts[axis].at;
  int64_t before = 0;
  for (const Json& item : list) {
    const auto name = reference(item);
    if (!name) return unsupported_error(node.op + ": an operand is not a tensor", node.id);
    const Shape shape = nest.shape_of(*name);
    if (!stacks && shape.size() <= axis)  // cat accepts an empty tensor of one axis
      return unsupported_error(node.op + ": operands of different ranks", node.id);
    const int64_t size = stacks ? 1 : shape[axis];
    if (at >= before && at + length <= before + size) {
      View inner = view;
      const Start given = view.starts.empty() ? Start{} : view.starts[axis];
      const bool last = &item == &list.back();
      if (at > before && (!given.from.empty() || (given.from_end > 0 && !last)))
        return nest.cut_at(node,
                           node.op + ": a slice that begins at another element at other sizes");
      if (!inner.starts.empty())
        inner.starts[axis] =
            at == before ? Start{} : Start{.at = at - before, .from_end = given.from_end};
      if (stacks) {
        inner.axes.erase(inner.axes.begin() + long(axis));
        if (!inner.starts.empty()) inner.starts.erase(inner.starts.begin() + long(axis));
      }
      return builder.value(*name, inner);
    }
    before += size;
  }
  return build_choice(builder, node, view, axis);
}

}  // namespace cutegen::recipes
