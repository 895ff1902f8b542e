// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/contraction.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/builder.h"
#include "recipes/fuse/extents.h"
#include "recipes/fuse/views.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {
namespace {

int64_t product_of(const Shape& shape) {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;  // shapes of a checked graph: no overflow
  return n;
}

// Returns the leading axes of a factor that a view has merged into one batch: {2, 3} if it shows
// [2, 3, M, K] as [6, M, K].
std::optional<Shape> merged_batch(const Graph& graph, const std::string& factor) {
  const Node* view = graph.producer(factor);
  if (!view || !is_view(*view)) return std::nullopt;
  auto from = reference(argument(*view, 0, "self"));
  const Value* value = from ? graph.find(*from) : nullptr;
  const Shape& to = view->outputs.front().shape;
  if (!value || to.size() != 3 || value->shape.size() <= 3) return std::nullopt;
  const Shape& shape = value->shape;
  Shape batch(shape.begin(), shape.end() - 2);
  bool same = std::equal(to.end() - 2, to.end(), shape.end() - 2) && product_of(batch) == to[0];
  return same ? std::optional<Shape>(batch) : std::nullopt;
}

// Returns the computed value that a factor is a view of; empty if the factor is a view of a tensor
// or of a kept value.
std::string computed_source(const Region& region, std::string name) {
  const Graph& graph = region.source.graph;
  for (;;) {
    const Node* node = region.kept.count(name) ? nullptr : graph.producer(name);
    if (!node) return "";
    auto from = is_view(*node) ? reference(argument(*node, 0, "self")) : std::nullopt;
    if (!from) return name;
    name = *from;
  }
}

// Finds the tensor behind a factor, seen along `axes` of the loads. With an error, `cut` names the
// value to keep so that the factor is a tensor.
Result<Operand> load_factor(Builder& builder, const Region& region, const std::string& factor,
                            const std::vector<int>& axes, const std::optional<Shape>& batch,
                            std::string& cut) {
  const Graph& graph = region.source.graph;
  std::string name = factor;
  View view{.axes = axes, .reshaped = {}};
  if (batch) {
    auto own = merged_batch(graph, factor);
    if (own && *own == *batch) {
      name = *reference(argument(*graph.producer(factor), 0, "self"));
    } else {
      Shape shape = *batch;
      const Shape& to = graph.find(factor)->shape;
      shape.insert(shape.end(), to.end() - 2, to.end());
      view.reshaped = shape;
    }
  }
  const std::string computed = computed_source(region, name);
  auto inst = builder.value(name, view);
  if (!inst) {
    cut = computed.empty() ? builder.cut() : computed;
    return fail(inst.error());
  }
  const Inst& leaf = builder.fused().insts[size_t(*inst)];
  if (leaf.kind != InstKind::leaf) {
    cut = computed;
    return unsupported_error("a factor of the product is computed (" + leaf.name + ")");
  }
  return builder.fused().inputs[size_t(leaf.operand)];
}

// Returns the value behind a factor that is computed from packed weights, or an empty string.
std::string packed_source(const Region& region, std::string name) {
  const Graph& graph = region.source.graph;
  while (region.packed && !region.kept.count(name) && graph.producer(name)) {
    if (packed_weights(graph, name)) return name;
    const Node& node = *graph.producer(name);
    auto from = is_view(node) ? reference(argument(node, 0, "self")) : std::nullopt;
    if (!from) break;
    name = *from;
  }
  return "";
}

// Makes the factor, which reads `value`, read the packed weights.
Result<void> read_packed(const Region& region, const std::string& value, Factor& factor) {
  factor.packed = packed_weights(region.source.graph, value);
  CG_ASSERT(factor.packed);
  if (factor.row.move == Move::next || factor.depth.move != Move::next || factor.operand.reshaped)
    return unsupported_error("packed weights that do not lie along the depth");
  const std::string& tensor = factor.packed->tensor;
  factor.row = {.move = Move::stride,
                .expression = fmt::format("dim({},1)", region.names.at(tensor))};
  factor.operand = {.tensor = tensor, .dtype = factor.packed->dtype, .axes = {}};
  return {};
}

// The sizes of a matrix of packed weights, as plan expressions.
std::vector<std::string> packed_extents(const Region& region, const std::string& value) {
  const auto packed = packed_weights(region.source.graph, value);
  const std::string& name = region.names.at(packed->tensor);
  return {fmt::format("dim({},0)", name),
          fmt::format("{}dim({},1)", packed->nibbles ? "2*" : "", name)};
}

// An axis of size 1 that no tensor has was added by the graph, so its size is always 1.
void one_where_unseen(Fused& loads) {
  for (size_t i = 0; i < loads.axes.size(); ++i) {
    auto has = [&](const Operand& operand) {
      return !operand.reshaped &&
             std::find(operand.axes.begin(), operand.axes.end(), int(i)) != operand.axes.end();
    };
    if (loads.axes[i].size == 1 && std::none_of(loads.inputs.begin(), loads.inputs.end(), has))
      loads.axes[i].extent = "1";
  }
}

Stride along(const Fused& fused, const Operand& operand, int axis) {
  return axis < 0 ? Stride{} : stride(fused, operand, {.axes = {axis}, .size = 1, .extent = "1"});
}

// Returns the finest mode of all outputs. MathMode lists the modes from the finest to the coarsest.
MathMode finest_mode(const Task& task) {
  MathMode found = task.math_mode;
  for (const TensorInfo* out : task.with_role(TensorRole::output))
    found = std::min(found, mode_of(task, *out));
  return found;
}

// Loads the factors. Splits their batch axis into `batch`, if given.
Result<Contraction> load_factors(const Task& task, const Region& region, const Node& node,
                                 const std::optional<Shape>& batch, std::string& cut) {
  const Graph& graph = region.source.graph;
  Contraction c;
  c.op = node.op;
  c.math_mode = finest_mode(task);
  if (c.math_mode == MathMode::fp32 && node.kwargs.value(kTf32, false))
    c.math_mode = MathMode::tf32;
  c.rounded = node.kwargs.value(kRounded, false);
  auto first = reference(argument(node, 0, "self")), second = reference(argument(node, 1, ""));
  if (!second) second = reference(argument(node, 1, "mat2"));
  const Value *a = first ? graph.find(*first) : nullptr,
              *b = second ? graph.find(*second) : nullptr;
  std::string base = base_name(node.op);
  size_t rank_a = base == "bmm" ? 3 : 2, rank_b = base == "mv" ? 1 : rank_a;
  if (!a || !b || a->shape.size() != rank_a || b->shape.size() != rank_b)
    return unsupported_error(node.op + ": its factors are not matrices", node.id);

  std::vector<Axis> axes;
  auto add = [&](int64_t size) {
    axes.push_back({.size = size, .reduced = false, .extent = ""});
    return int(axes.size()) - 1;
  };
  for (int64_t size : batch ? *batch : Shape(a->shape.begin(), a->shape.end() - 2))
    c.batch_axes.push_back(add(size));
  c.m = add(a->shape[rank_a - 2]);
  c.k = add(a->shape[rank_a - 1]);
  if (rank_b > 1) c.n = add(b->shape[rank_b - 1]);

  std::vector<int> axes_a = c.batch_axes, axes_b = c.batch_axes;
  axes_a.insert(axes_a.end(), {c.m, c.k});
  if (rank_b > 1)
    axes_b.insert(axes_b.end(), {c.k, c.n});
  else
    axes_b = {c.k};
  Region whole = region;
  const bool may_pack = c.batch_axes.empty() && rank_b == 2 && a->shape[0] <= kMostPackedRows;
  const std::string packed = may_pack ? packed_source(region, *second) : "";
  if (!packed.empty()) {
    whole.kept[packed] = packed_extents(region, packed);
    whole.names[packed] = packed;
  }
  Builder builder(whole, axes);
  CG_TRY(c.a.operand, load_factor(builder, whole, *first, axes_a, batch, cut));
  CG_TRY(c.b.operand, load_factor(builder, whole, *second, axes_b, batch, cut));
  c.loads = std::move(builder.fused());
  one_where_unseen(c.loads);
  CG_CHECK(find_extents(c.loads));
  for (auto* factor : {&c.a, &c.b}) {
    factor->row = along(c.loads, factor->operand, factor == &c.a ? c.m : c.n);
    factor->depth = along(c.loads, factor->operand, c.k);
    for (int axis : c.batch_axes) factor->batch.push_back(along(c.loads, factor->operand, axis));
  }
  if (!packed.empty()) CG_CHECK(read_packed(region, packed, c.b));
  return c;
}

}  // namespace

// Loads the factors. If a view of a factor has merged several axes into the batch axis, and if
// possible, splits the batch axis into these axes.
Result<Contraction> load_factors(const Task& task, const Region& region, const Node& node,
                                 std::string& cut) {
  std::vector<std::optional<Shape>> batches;
  for (size_t i : {0u, 1u})
    if (auto factor = reference(argument(node, i, "")))
      if (auto batch = merged_batch(region.source.graph, *factor)) batches.push_back(batch);
  batches.push_back(std::nullopt);
  Result<Contraction> c = unsupported_error("no matrix product");
  for (const auto& batch : batches) {
    cut.clear();
    c = load_factors(task, region, node, batch, cut);
    if (c) break;
  }
  return c;
}

namespace {

// Finds the axes of `viewed` that make up each axis of `whole`; nothing if they do not line up.
std::optional<std::vector<std::vector<size_t>>> split_axes(const Shape& viewed,
                                                           const Shape& whole) {
  std::vector<std::vector<size_t>> groups(whole.size());
  size_t at = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    int64_t n = 1;
    while (n < whole[i] && at < viewed.size()) {
      groups[i].push_back(at);
      n *= viewed[at++];
    }
    if (n != whole[i]) return std::nullopt;
  }
  while (at < viewed.size())
    if (viewed[at++] != 1) return std::nullopt;
  return groups;
}

// Merges neighbouring axes of a group into one loop if all operands step along them alike.
std::vector<Loop> merge(const Fused& fused, const std::vector<int>& axes) {
  std::vector<Loop> loops;
  auto alike = [&](int outer, int inner) {
    auto same = [&](const Operand& operand) {
      int p = position(operand, outer), q = position(operand, inner);
      return p < 0 ? q < 0 : q == p + 1;
    };
    return std::all_of(fused.inputs.begin(), fused.inputs.end(), same) &&
           std::all_of(fused.outputs.begin(), fused.outputs.end(),
                       [&](const FusedOutput& o) { return same(o.operand); });
  };
  for (int id : axes) {
    const Axis& axis = fused.axes[size_t(id)];
    if (!loops.empty() && alike(loops.back().axes.back(), id)) {
      loops.back().axes.push_back(id);
      loops.back().size *= axis.size;
      loops.back().extent += "*" + axis.extent;
    } else {
      loops.push_back({.axes = {id}, .size = axis.size, .extent = axis.extent});
    }
  }
  return loops;
}

}  // namespace

Result<void> group_axes_of_output(Contraction& c, const Shape& whole, bool has_n) {
  const Operand& leaf = c.finish.inputs[size_t(c.finish.insts[size_t(c.product)].operand)];
  auto groups = split_axes(leaf.shape, whole);
  if (!groups) return unsupported_error("the product is reshaped across its rows and columns");
  std::vector<std::vector<int>> axes(whole.size());
  for (size_t i = 0; i < whole.size(); ++i)
    for (size_t at : (*groups)[i])
      if (leaf.axes[at] >= 0) axes[i].push_back(leaf.axes[at]);
  size_t all = 0;
  for (const Axis& axis : c.finish.axes) all += axis.size != 1;
  size_t found = 0;
  for (const auto& group : axes)
    for (int id : group) found += c.finish.axes[size_t(id)].size != 1;
  if (found != all) return unsupported_error("the product is repeated along an axis");
  size_t last = axes.size();
  if (has_n) c.loops_n = merge(c.finish, axes[--last]);
  c.loops_m = merge(c.finish, axes[--last]);
  if (last > 0) c.loops_batch = merge(c.finish, axes[0]);
  return {};
}

namespace {

// The axes that a reshape merged into the factor's axis; nothing if the plan does not know them.
std::vector<Axis> merged_in(const Contraction& c, const Operand& operand, int axis) {
  const int found = axis < 0 ? -1 : position(operand, axis);
  if (found < 0) return {};
  const auto place = size_t(found);
  if (!operand.reshaped) {
    const auto parts = operand.parts.find(place);
    return parts == operand.parts.end() ? std::vector<Axis>{} : parts->second;
  }
  std::vector<Axis> parts;
  for (const AxisGroup& group :
       group_axes(operand.original, operand.shape).value_or(std::vector<AxisGroup>{}))
    if (group.to == std::vector<size_t>{place} && group.from.size() > 1)
      for (size_t from : group.from)
        parts.push_back(
            {.size = operand.original[from],
             .reduced = false,
             .extent = operand.kept
                           ? operand.extents[from]
                           : fmt::format("dim({},{})", c.loads.names.at(operand.tensor), from)});
  return parts;
}

}  // namespace

MergedAxes parts_of_result(const Contraction& c) {
  MergedAxes parts;
  for (int axis : c.batch_axes) parts[0].push_back(c.loads.axes[size_t(axis)]);
  const size_t rows = parts.size();
  const std::pair<size_t, std::vector<Axis>> both[] = {{rows, merged_in(c, c.a.operand, c.m)},
                                                       {rows + 1, merged_in(c, c.b.operand, c.n)}};
  for (const auto& [axis, merged] : both)
    if (!merged.empty()) parts[axis] = merged;
  return parts;
}

std::vector<std::string> extents_of_product(const Contraction& c, const Value& result) {
  std::vector<std::string> extents{c.extent(c.m), c.extent(c.n)};
  if (result.shape.size() == 1) extents.pop_back();
  if (result.shape.size() < 3) return extents;
  std::string batches = "1";
  for (int axis : c.batch_axes)
    batches = batches == "1" ? c.extent(axis) : fmt::format("{}*{}", batches, c.extent(axis));
  extents.insert(extents.begin(), batches);
  return extents;
}

namespace {

bool depends_on(const Graph& graph, const std::string& value, const std::string& on) {
  for (const Node* node : nodes_above(graph, {value}, {}))
    for (const Value& output : node->outputs)
      if (output.name == on) return true;
  return false;
}

// Fuses the operators after the product, which is a leaf for them.
Result<void> fuse_rest(const Region& region, const Masks& masks, const Node& node, Contraction& c,
                       std::string& cut) {
  const Value& result = node.outputs.front();
  Region rest = region;
  rest.kept[result.name] = extents_of_product(c, result);
  rest.parts[result.name] = parts_of_result(c);
  rest.names.emplace(result.name, "product");  // unless it is an output itself
  Attempt attempt = fuse(rest);
  if (!attempt.fused) {
    const bool needed = !attempt.cut.empty() && !region.kept.count(attempt.cut) &&
                        !depends_on(region.source.graph, attempt.cut, result.name);
    if (needed) cut = attempt.cut;
    return fail(attempt.fused.error());
  }
  c.finish = std::move(*attempt.fused);
  if (c.finish.reduces())
    return unsupported_error("a reduction follows the product: no kernel computes both");
  for (size_t i = 0; i < c.finish.insts.size(); ++i) {
    const Inst& inst = c.finish.insts[i];
    if (inst.kind != InstKind::leaf) continue;
    if (auto mask = masks.find(inst.name); mask != masks.end()) c.masks[int(i)] = mask->second;
    if (inst.name != result.name) continue;
    if (c.product >= 0) return unsupported_error("the product is used along several axes");
    c.product = int(i);
  }
  if (c.product < 0) return unsupported_error("the product is not used");
  for (const auto& [name, mask] : masks) c.finish.names[name] = "inside";
  return group_axes_of_output(c, result.shape, base_name(node.op) != "mv");
}

bool is_single(const std::vector<Loop>& loops, int axis) {
  return loops.size() == 1 && loops[0].axes.size() == 1 && loops[0].axes[0] == axis;
}

// A mask must lie over the product's own rows and columns, in either order.
Result<void> place_masks(Contraction& c) {
  for (auto& [inst, mask] : c.masks) {
    const Inst& leaf = c.finish.insts[size_t(inst)];
    const std::vector<int>& axes = c.finish.inputs[size_t(leaf.operand)].axes;
    if (axes.size() < 2 || c.finish.inputs[size_t(leaf.operand)].reshaped)
      return unsupported_error("a triangle of a reshaped result");
    int row = axes[axes.size() - 2], column = axes.back();
    if (is_single(c.loops_m, column) && is_single(c.loops_n, row))
      mask = {.upper = !mask.upper, .diagonal = -mask.diagonal};  // swap rows and columns
    else if (!is_single(c.loops_m, row) || !is_single(c.loops_n, column))
      return unsupported_error("a triangle over other axes than the product's");
    // If where(mask, product, 0) is its only use, results outside the mask need not be computed.
    int uses = 0;
    bool masked = false;
    for (const Inst& i : c.finish.insts) {
      uses += int(std::count(i.inputs.begin(), i.inputs.end(), c.product));
      masked |= i.code == "({0} ? {1} : 0.0f)" && i.inputs == std::vector<int>{inst, c.product};
    }
    for (const FusedOutput& output : c.finish.outputs) uses += output.inst == c.product;
    if (masked && uses == 1) c.zero_outside = mask;
  }
  return {};
}

// Swaps the factors if that makes the output contiguous along n.
void turn(Contraction& c) {
  if (c.loops_m.empty()) return;
  const Operand& out = c.finish.outputs.front().operand;
  if (stride(c.finish, out, c.loops_m.back()).move != Move::next) return;
  if (!c.loops_n.empty() && stride(c.finish, out, c.loops_n.back()).move == Move::next) return;
  std::swap(c.a, c.b);
  std::swap(c.m, c.n);
  std::swap(c.loops_m, c.loops_n);
  c.turned = true;
}

}  // namespace

int64_t Contraction::size(int axis) const {
  if (axis >= 0 && axis == n && columns) return columns->size;
  return axis < 0 ? 1 : loads.axes[size_t(axis)].size;
}

std::string Contraction::extent(int axis) const {
  if (axis >= 0 && axis == n && columns) return columns->extent;
  return axis < 0 ? "1" : loads.axes[size_t(axis)].extent;
}

int64_t Contraction::batches() const {
  int64_t n = 1;
  for (int axis : batch_axes) n *= size(axis);
  return n;
}

ContractionAttempt contract(const Task& task, const Region& region, const Masks& masks,
                            const Node& product) {
  std::string cut;
  auto run = [&]() -> Result<Contraction> {
    CG_TRY(Contraction c, load_factors(task, region, product, cut));
    CG_CHECK(fuse_rest(region, masks, product, c, cut));
    turn(c);
    const bool halves = c.math_mode == MathMode::bf16 || c.math_mode == MathMode::fp16;
    if (c.a.packed || (c.b.packed && !halves))
      return unsupported_error("packed weights of another product than rows of 16-bit elements");
    CG_CHECK(place_masks(c));
    return c;
  };
  Result<Contraction> c = run();
  return {.product = std::move(c), .cut = cut};
}

std::optional<Vector> vector_factor(const Task& task, const Region& region, const Node& product) {
  std::string cut;
  auto c = load_factors(task, region, product, cut);
  if (!c) return std::nullopt;
  auto one = [&](const Factor& factor, int axis) {
    if (c->size(axis) != 1) return false;
    int at = axis < 0 ? -1 : position(factor.operand, axis);
    if (at < 0) return true;  // 1 at every size, because the graph added the axis
    if (factor.operand.reshaped) return false;
    for (const ShapeCase& shape : task.shapes) {
      auto tensor = shape.tensors.find(factor.operand.tensor);
      auto place = size_t(at);
      if (tensor == shape.tensors.end() || place >= tensor->second.size() ||
          tensor->second[place] != 1)
        return false;
    }
    return true;
  };
  if (one(c->b, c->n)) return Vector::second;
  if (one(c->a, c->m)) return Vector::first;
  return std::nullopt;
}

}  // namespace cutegen::recipes
