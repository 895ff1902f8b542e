// SPDX-License-Identifier: Apache-2.0
// Gathers of a Builder: an index tensor says where a kernel reads its operand.
#include <algorithm>

#include "recipes/fuse/operators.h"

namespace cutegen::recipes {
namespace {

// Adds the operand of the index tensor, which must be a tensor of the task or a value in scratch.
Result<int> index_operand(Builder& builder, const Node& node, const std::string& name,
                          const View& view) {
  NestWriter& nest = builder.nest();
  auto inst = builder.value(name, view);
  if (!inst) return inst;
  const Inst& leaf = nest.fused().insts[size_t(*inst)];
  if (leaf.kind != InstKind::leaf || !leaf.integer) {
    nest.cut_before(name);
    return unsupported_error(node.op + ": its index is a computed value", node.id);
  }
  const auto& starts = nest.fused().inputs[size_t(leaf.operand)].starts;
  if (std::any_of(starts.begin(), starts.end(), [](const Start& s) { return s.index >= 0; }))
    return nest.cut_at(node, node.op + " by an index that another gather reads");
  return leaf.operand;
}

// The broadcast shape of a gather's index tensors.
Shape index_shape(Builder& builder, const Gather& gather) {
  NestWriter& nest = builder.nest();
  Shape whole(gather.rank, 1);
  for (const Taken& taken : gather.taken) {
    const Shape shape = nest.shape_of(taken.index);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& size = whole[whole.size() - shape.size() + i];
      if (shape[i] != 1) size = shape[i];
    }
  }
  return whole;
}

}  // namespace

// The kernel reads the position along each taken axis from memory.
Result<int> build_gather(Builder& builder, const Node& node, const Gather& gather,
                         const View& view) {
  NestWriter& nest = builder.nest();
  if (!nest.region().slices || view.reshaped)
    return nest.cut_at(node, node.op + ": its result has to be copied first");
  const size_t rank = nest.graph().find(gather.input)->shape.size();
  std::vector<Start> starts = view.starts;
  starts.resize(view.axes.size());
  View inner{
      .axes = std::vector<int>(rank, -1), .reshaped = {}, .starts = std::vector<Start>(rank)};
  View indices{.axes = view.axes, .reshaped = {}, .starts = view.starts};
  if (!gather.along) {
    const auto begin = long(gather.first), end = begin + long(gather.rank);
    indices.axes.assign(view.axes.begin() + begin, view.axes.begin() + end);
    indices.starts.assign(starts.begin() + begin, starts.begin() + end);
    if (view.starts.empty()) indices.starts.clear();
  }
  const auto taken = [&](size_t axis) {
    return std::find_if(gather.taken.begin(), gather.taken.end(),
                        [&](const Taken& t) { return t.axis == axis; });
  };
  const Shape whole = index_shape(builder, gather);
  for (size_t axis = 0, out = 0; axis < rank; ++axis) {
    const auto at = taken(axis);
    if (at != gather.taken.end()) {
      const View seen =
          gather.along ? indices : broadcast(nest.shape_of(at->index), whole, indices);
      CG_TRY(inner.starts[axis].index, index_operand(builder, node, at->index, seen));
      inner.starts[axis].wraps = at->wraps;
      inner.starts[axis].modulo = at->modulo;
      out += gather.along ? 1 : 0;
      continue;
    }
    if (!gather.along && out == gather.first) out += gather.rank;
    inner.axes[axis] = view.axes[out];
    inner.starts[axis] = starts[out++];
  }
  return builder.value(gather.input, inner);
}

}  // namespace cutegen::recipes
