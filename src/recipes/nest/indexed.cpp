// SPDX-License-Identifier: Apache-2.0
// Gathers of a Builder: an index tensor says where a kernel reads its operand.
#include <algorithm>

#include "recipes/graph/gathers.h"
#include "recipes/nest/builder.h"

namespace cutegen::recipes {

// The operand that holds the indices at this view; they are a tensor of the task or in scratch.
Result<int> Builder::index(const Node& node, const std::string& name, const View& view) {
  auto inst = value(name, view);
  if (!inst) return inst;
  const Inst& leaf = fused_.insts[size_t(*inst)];
  if (leaf.kind != InstKind::leaf || !leaf.integer) {
    if (cut_.empty()) cut_ = name;
    return unsupported_error(node.op + ": its index is a computed value", node.id);
  }
  const auto& starts = fused_.inputs[size_t(leaf.operand)].starts;
  if (std::any_of(starts.begin(), starts.end(), [](const Start& s) { return s.index >= 0; }))
    return cut_at(node, node.op + " by an index that another gather reads");
  return leaf.operand;
}

// The kernel reads the position along each taken axis from memory.
Result<int> Builder::gathered(const Node& node, const Gather& gather, const View& view) {
  if (!region_.slices || view.reshaped)
    return cut_at(node, node.op + ": its result has to be copied first");
  const size_t rank = graph_.find(gather.input)->shape.size();
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
  const Shape whole = index_shape(gather);
  for (size_t axis = 0, out = 0; axis < rank; ++axis) {
    const auto at = taken(axis);
    if (at != gather.taken.end()) {
      const View seen = gather.along ? indices : broadcast(shape_of(at->index), whole, indices);
      CG_TRY(inner.starts[axis].index, index(node, at->index, seen));
      inner.starts[axis].wraps = at->wraps;
      inner.starts[axis].modulo = at->modulo;
      out += gather.along ? 1 : 0;
      continue;
    }
    if (!gather.along && out == gather.first) out += gather.rank;
    inner.axes[axis] = view.axes[out];
    inner.starts[axis] = starts[out++];
  }
  return value(gather.input, inner);
}

Result<void> Builder::aim(Operand& output, const Write& write) {
  const Shape whole = shape_of(write.tensor);
  const int along = output.axes[write.axis];
  output.mode = write.mode;
  output.shape = output.original = whole;
  output.starts.resize(whole.size());
  Start& start = output.starts[write.axis];
  if (!write.index.empty()) {
    const View seen{.axes = write.along ? output.axes : std::vector<int>{along}, .reshaped = {}};
    CG_TRY(int inst, value(write.index, seen));
    const Inst& leaf = fused_.insts[size_t(inst)];
    if (leaf.kind != InstKind::leaf || !leaf.integer) {
      if (cut_.empty()) cut_ = write.index;
      return unsupported_error("a write to " + write.tensor + " at computed positions");
    }
    start.index = leaf.operand;
    start.wraps = write.wraps;
    output.axes[write.axis] = -1;
    return {};
  }
  const int64_t size = whole[write.axis];
  start.at = write.start < 0 ? std::max<int64_t>(0, write.start + size) : write.start;
  if (write.start < 0) start.from_end = size - start.at;
  return {};
}

// The broadcast shape of a gather's index tensors.
Shape Builder::index_shape(const Gather& gather) const {
  Shape whole(gather.rank, 1);
  for (const Taken& taken : gather.taken) {
    const Shape shape = shape_of(taken.index);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& size = whole[whole.size() - shape.size() + i];
      if (shape[i] != 1) size = shape[i];
    }
  }
  return whole;
}

// The view of a value with one element for each row.
View Builder::rows_view() const {
  View rows;
  for (size_t i = 0; i < fused_.axes.size(); ++i)
    if (!fused_.axes[i].reduced) rows.axes.push_back(int(i));
  return rows;
}

// The element of the row at the place that an index tensor holds, read once more; zero for a place
// outside the row. -1 if the kernel cannot read it there.
int Builder::picked(const Reduction& r, int index) {
  const Inst& leaf = fused_.insts[size_t(index)];
  if (!region_.slices || r.axes.size() != 1 || leaf.kind != InstKind::leaf || !leaf.integer)
    return -1;
  View at;
  for (size_t i = 0; i < fused_.axes.size(); ++i)
    at.axes.push_back(fused_.axes[i].reduced ? -1 : int(i));
  at.starts.resize(at.axes.size());
  at.starts[size_t(r.axes[0])].index = leaf.operand;
  at.starts[size_t(r.axes[0])].nearest = true;
  const std::string before = cut_;
  auto element = value(r.input, at);
  cut_ = before;
  if (!element || fused_.insts[size_t(*element)].level != Level::row ||
      fused_.insts[size_t(*element)].depth == 0)
    return -1;
  return make("picked", "({1} >= 0 && {1} < {2} ? {0} : 0.0f)", {*element, index, count()});
}

}  // namespace cutegen::recipes
