// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/attended.h"

#include <algorithm>

#include "recipes/fuse/builder.h"
#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

using AxisOf = Attention::AxisOf;

Stride stride_along(const Fused& fused, const Operand& operand, int axis) {
  return stride(fused, operand, {.axes = {axis}, .size = 1, .extent = "1"});
}

class AttentionLoader {
 public:
  AttentionLoader(const Region& region, const Node& node) : graph_(region.source.graph) {
    attention_.node = read_attention(node);
    const AttentionNode& n = attention_.node;
    const Shape q = shape(n.q, n.slice_q), k = shape(n.k, n.slice_k), v = shape(n.v, n.slice_v);
    const size_t rank = q.size();
    std::vector<Axis> axes(AxisOf::kSlices + 3);
    auto set = [&](AxisOf axis, int64_t size) { axes[size_t(axis)].size = size; };
    set(AxisOf::kBatch, q[0]);
    set(AxisOf::kHead, n.heads ? q[1] : 1);
    set(AxisOf::kKeyHead, n.grouped ? k[1] : 1);
    set(AxisOf::kRow, q[rank - 2]);
    set(AxisOf::kKey, v[rank - 2]);
    set(AxisOf::kDepth, q[rank - 1]);
    set(AxisOf::kWidth, v[rank - 1]);
    int part = AxisOf::kSlices;
    for (const auto& [name, slice] :
         {std::pair(n.q, n.slice_q), {n.k, n.slice_k}, {n.v, n.slice_v}}) {
      Axis& axis = axes[size_t(part++)];
      axis.size = slice.axis < 0 ? 1 : graph_.find(name)->shape[size_t(slice.axis)];
      axis.extent = std::to_string(axis.size);  // a constant: the size in the graph
    }
    builder_.emplace(region, std::move(axes));
  }

  Result<Attention> run(std::string& cut) {
    const AttentionNode& n = attention_.node;
    const AxisOf key_head = n.grouped ? AxisOf::kKeyHead : AxisOf::kHead;
    CG_CHECK(
        load(n.q, n.slice_q, {AxisOf::kHead, AxisOf::kRow, AxisOf::kDepth}, attention_.q, cut));
    std::vector<AxisOf> of_k{key_head, AxisOf::kKey, AxisOf::kDepth};
    if (n.turned) std::swap(of_k[1], of_k[2]);
    CG_CHECK(load(n.k, n.slice_k, of_k, attention_.k, cut));
    CG_CHECK(load(n.v, n.slice_v, {key_head, AxisOf::kKey, AxisOf::kWidth}, attention_.v, cut));
    if (!n.mask.empty()) CG_CHECK(load_mask(cut));
    attention_.loads = std::move(builder_->fused());
    Fused& loads = attention_.loads;
    if (!find_extents(loads)) {
      // Behind a view that splits a line into heads, no operand shows the size of a head. It
      // becomes a constant of the program.
      for (AxisOf axis : {AxisOf::kDepth, AxisOf::kWidth}) {
        Axis& fixed = loads.axes[size_t(axis)];
        if (fixed.extent.empty()) fixed.extent = std::to_string(fixed.size);
      }
      CG_CHECK(find_extents(loads));
    }
    place(attention_.q, AxisOf::kHead, AxisOf::kRow, AxisOf::kDepth);
    place(attention_.k, key_head, AxisOf::kKey, AxisOf::kDepth);
    place(attention_.v, key_head, AxisOf::kKey, AxisOf::kWidth);
    if (attention_.mask) place(*attention_.mask, AxisOf::kHead, AxisOf::kRow, AxisOf::kKey);
    return std::move(attention_);
  }

 private:
  Shape shape(const std::string& name, const AttentionSlice& slice = {}) const {
    Shape shape = graph_.find(name)->shape;
    if (slice.axis >= 0) shape.erase(shape.begin() + slice.axis);
    return shape;
  }

  Result<Operand> leaf(const std::string& name, const std::vector<int>& axes, std::string& cut) {
    auto inst = builder_->value(name, {.axes = axes, .reshaped = {}});
    if (!inst) {
      cut = graph_.producer(name) ? name : "";
      return fail(inst.error());
    }
    const Inst& found = builder_->fused().insts[size_t(*inst)];
    if (found.kind == InstKind::leaf) return builder_->fused().inputs[size_t(found.operand)];
    cut = name;
    return unsupported_error("an operand of the attention is computed (" + found.name + ")");
  }

  Result<void> load(const std::string& name, const AttentionSlice& slice,
                    const std::vector<AxisOf>& rest, Attended& to, std::string& cut) {
    std::vector<int> axes{AxisOf::kBatch};
    for (AxisOf axis : rest)
      if (attention_.node.heads || &axis != rest.data()) axes.push_back(axis);
    if (slice.axis >= 0) {
      const int own = AxisOf::kSlices + (&to == &attention_.q ? 0 : &to == &attention_.k ? 1 : 2);
      axes.insert(axes.begin() + slice.axis, own);
      to.index = slice.index;
      to.slices = builder_->fused().axes[size_t(own)].size;
    }
    CG_TRY(to.operand, leaf(name, axes, cut));
    return {};
  }

  Result<void> load_mask(std::string& cut) {
    const Shape mask = shape(attention_.node.mask);
    std::vector<int> all{AxisOf::kBatch, AxisOf::kHead, AxisOf::kRow, AxisOf::kKey};
    if (!attention_.node.heads) all.erase(all.begin() + 1);
    std::vector<int> axes(all.end() - long(mask.size()), all.end());
    for (size_t i = 0; i < mask.size(); ++i)
      if (mask[i] == 1 && builder_->fused().axes[size_t(axes[i])].size != 1) axes[i] = -1;
    attention_.mask.emplace();
    CG_TRY(attention_.mask->operand, leaf(attention_.node.mask, axes, cut));
    return {};
  }

  void place(Attended& to, AxisOf head, AxisOf row, AxisOf along) const {
    const Fused& loads = attention_.loads;
    to.batch = stride_along(loads, to.operand, AxisOf::kBatch);
    to.head = stride_along(loads, to.operand, head);
    to.row = stride_along(loads, to.operand, row);
    to.along = stride_along(loads, to.operand, along);
    const int own = AxisOf::kSlices + (&to == &attention_.q ? 0 : &to == &attention_.k ? 1 : 2);
    if (to.slices > 1) to.slice = stride_along(loads, to.operand, own);
  }

  const Graph& graph_;
  Attention attention_;
  std::optional<Builder> builder_;
};

AxisOf axis_of_result(int axis) {
  constexpr AxisOf kAxes[] = {AxisOf::kBatch, AxisOf::kHead, AxisOf::kRow, AxisOf::kWidth};
  return kAxes[axis];
}

// The sizes of the result's axes, each a product of neighbours in memory.
Result<std::vector<std::string>> result_extents(const Attention& a, const Shape& result) {
  Shape whole;
  for (int axis : a.node.order) whole.push_back(a.size(axis_of_result(axis)));
  auto groups = group_axes(whole, result);
  if (!groups) return unsupported_error("the attention's result is reshaped across its axes");
  std::vector<std::string> extents(result.size(), "1");
  for (const AxisGroup& group : *groups) {
    if (group.to.size() != 1)
      return unsupported_error("the attention's result is reshaped across its axes");
    std::string text;
    for (size_t i : group.from)
      text += (text.empty() ? "(" : "*(") + a.extent(axis_of_result(a.node.order[i])) + ")";
    extents[group.to[0]] = text.empty() ? "1" : text;
  }
  return extents;
}

// The strides of a contiguous result.
void place_result(Attention& a) {
  std::string step = "1";
  Stride* of[] = {&a.out.batch, &a.out.head, &a.out.row, &a.out.along};
  for (size_t i = a.node.order.size(); i-- > 0;) {
    *of[a.node.order[i]] = {.move = step == "1" ? Move::next : Move::stride, .expression = step};
    step += "*(" + a.extent(axis_of_result(a.node.order[i])) + ")";
  }
}

}  // namespace

AttentionAttempt attention_stage(const Region& region, const Node& node,
                                 const Region::Output& output) {
  std::string cut;
  auto run = [&]() -> Result<Attention> {
    CG_TRY(Attention a, AttentionLoader(region, node).run(cut));
    a.loads.names = region.names;
    const Value& result = node.outputs.front();
    place_result(a);
    a.out.operand = {.tensor = output.tensor,
                     .dtype = output.dtype,
                     .shape = result.shape,
                     .axes = {},
                     .reshaped = false,
                     .original = result.shape,
                     .kept = output.kept,
                     .extents = {},
                     .parts = {}};
    if (output.kept) {
      CG_TRY(a.out.operand.extents, result_extents(a, result.shape));
    }
    a.outputs = {{.operand = a.out.operand, .inst = -1}};
    return a;
  };
  Result<Attention> attention = run();
  return {.attention = std::move(attention), .cut = cut};
}

}  // namespace cutegen::recipes
