// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "recipes/composites/composites.h"
#include "recipes/fuse/builder.h"
#include "recipes/fuse/cuts.h"
#include "recipes/fuse/equal_nodes.h"
#include "recipes/fuse/extents.h"
#include "recipes/fuse/ties.h"
#include "recipes/fuse/views.h"
#include "recipes/graph/attention.h"
#include "recipes/graph/gathers.h"
#include "recipes/graph/names.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/products.h"
#include "recipes/graph/reductions.h"
#include "recipes/graph/reshape.h"
#include "recipes/spatial/cut_windows.h"
#include "recipes/spatial/line_pools.h"
#include "recipes/spatial/resamples.h"
#include "recipes/views/earlier_moves.h"
#include "recipes/views/einsum_views.h"
#include "recipes/views/finer_views.h"
#include "recipes/views/later_views.h"
#include "recipes/views/slices_of_views.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMaxNodes = 4096;

// Removes in-place operators: later readers of the overwritten value read the new one.
Result<Graph> without_in_place(Graph graph) {
  std::map<std::string, std::string> now;
  for (Node& node : graph.nodes) {
    for (Json& arg : node.args) rename_values(arg, now);
    for (auto& [key, arg] : node.kwargs.items()) rename_values(arg, now);
    if (!is_in_place(node.op) || node.outputs.empty()) continue;
    auto self = reference(argument(node, 0, "self"));
    if (!self) continue;
    if (!graph.producer(*self))
      return unsupported_error(fmt::format("{} writes the task's own tensor {}", node.op, *self));
    for (auto& [from, to] : now)
      if (to == *self) to = node.outputs.front().name;
    now[*self] = node.outputs.front().name;
  }
  for (std::string& output : graph.outputs)
    if (auto it = now.find(output); it != now.end()) output = it->second;
  return graph;
}

// The task's outputs, then the mutated tensors that get a new value as a whole.
std::vector<const TensorInfo*> results_in_order(const Task& task,
                                                const std::vector<Write>& writes) {
  std::vector<const TensorInfo*> list = task.with_role(TensorRole::output);
  for (const Write& write : writes)
    if (write.whole) list.push_back(task.find(write.tensor));
  return list;
}

// Fails at the first operator that no recipe has a rule for.
Result<void> check_operators(const Graph& graph, const std::vector<const Node*>& nodes) {
  for (const Node* node : nodes) {
    if (is_window(*node) || is_view(*node) || is_fill(*node) || is_slice(*node) || is_join(*node) ||
        node->op.find("getitem") != std::string::npos)
      continue;
    if (node->op == kInside || node->op == kShift || node->op == kCounting || node->op == kAffine ||
        node->op == kBlocks || node->op == kFilled || node->op == kValues || is_gather(*node))
      continue;
    CG_TRY(auto reduction, find_reduction(graph, *node));
    if (reduction) continue;
    CG_TRY(auto pointwise, lower_pointwise(*node));
    if (!pointwise) return unsupported_error("no recipe covers " + node->op, node->id);
  }
  return {};
}

// Finds the axes of the loop nest: the axes of the reductions' common input, or of the outputs. If
// reductions differ or if outputs lie along other axes, sets `cut` to the value to keep. Without
// reductions, the axes of the value `seen` (if not empty) replace the axes of the outputs.
Result<std::vector<Axis>> find_axes(const Region& region, const std::vector<const Node*>& nodes,
                                    const std::string& seen, std::string& cut) {
  const Graph& graph = region.source.graph;
  std::vector<Reducing> found;
  for (const Node* node : nodes) {
    CG_TRY(auto r, find_reduction(graph, *node));
    if (r) found.push_back({.node = node, .r = std::move(*r)});
  }
  std::vector<Axis> axes;
  if (found.empty()) {
    const Value* output = graph.find(region.outputs.front().value);
    if (!output) return unsupported_error("an output that no node computes");
    for (int64_t size : seen.empty() ? output->shape : graph.find(seen)->shape)
      axes.push_back({.size = size, .reduced = false, .extent = ""});
    if (auto known = region.source.extents.find(seen); known != region.source.extents.end())
      for (const auto& [axis, extent] : known->second) axes[axis].extent = extent;
    if (const auto& part = region.outputs.front().part) axes[part->axis].size = part->length;
    return axes;
  }
  if (region.outputs.front().part) {
    cut = found.back().node->outputs.front().name;
    return unsupported_error("a part of a reduced value", found.back().node->id);
  }
  const Reduction& last = found.back().r;
  for (const Reducing& other : found) {
    if (alike(other.r, last)) continue;
    cut = find_cut(region, found);
    return unsupported_error(fmt::format("{}: reduces other axes or another shape than {}",
                                         other.node->op, found.back().node->op),
                             other.node->id);
  }
  for (int64_t size : last.shape) axes.push_back({.size = size, .reduced = false, .extent = ""});
  for (int axis : last.axes) axes[size_t(axis)].reduced = true;
  cut = found.back().node->outputs.front().name;  // used if the outputs do not lie in this nest
  for (const Reducing& reducing : found)
    if (auto known = region.source.extents.find(reducing.r.input);
        known != region.source.extents.end())
      for (const auto& [axis, extent] : known->second) axes[axis].extent = extent;
  return axes;
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  for (int64_t size : shape)
    if (size != 1) rest.push_back(size);
  return rest;
}

struct Place {
  std::vector<int> axes;
  std::optional<Shape> reshaped;
};

// Maps the axes of `shape` to the axes `ids`, which have the sizes `sizes`. Ignores axes of size 1.
// Returns nullopt if the other sizes differ.
std::optional<std::vector<int>> up_to_ones(const Shape& shape, const Shape& sizes,
                                           const std::vector<int>& ids) {
  if (without_ones(shape) != without_ones(sizes)) return std::nullopt;
  std::vector<int> map(shape.size(), -1);
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    while (sizes[next] == 1) ++next;
    map[i] = ids[next++];
  }
  return map;
}

// Finds an output's axes in the nest by its shape. The output has all axes, all axes with size 1 in
// place of reduced ones, or only the axes that are not reduced. Its shape may have other axes of
// size 1, or be a reshape.
Result<Place> place_output(const Shape& shape, const std::vector<Axis>& axes) {
  Shape all, kept, keepdim;
  std::vector<int> all_axes, kept_axes, keepdim_axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    all.push_back(axes[i].size);
    all_axes.push_back(int(i));
    keepdim.push_back(axes[i].reduced ? 1 : axes[i].size);
    keepdim_axes.push_back(axes[i].reduced ? -1 : int(i));
    if (axes[i].reduced) continue;
    kept.push_back(axes[i].size);
    kept_axes.push_back(int(i));
  }
  if (shape == all) return Place{.axes = all_axes, .reshaped = {}};
  if (shape == keepdim) return Place{.axes = keepdim_axes, .reshaped = {}};
  if (shape == kept) return Place{.axes = kept_axes, .reshaped = {}};
  if (auto map = up_to_ones(shape, all, all_axes)) return Place{.axes = *map, .reshaped = {}};
  if (auto map = up_to_ones(shape, kept, kept_axes)) return Place{.axes = *map, .reshaped = {}};
  if (group_axes(shape, all)) return Place{.axes = all_axes, .reshaped = all};
  if (group_axes(shape, kept)) return Place{.axes = kept_axes, .reshaped = kept};
  return unsupported_error(fmt::format("an output of shape {} does not follow the axes of {}",
                                       to_string(shape), to_string(all)));
}

}  // namespace

bool has_own_stage(const Node& node) {
  return is_window(node) || is_product(node) || is_attention(node) || is_choice(node) ||
         node.op == kScatter || node.op == kRecurrence;
}

bool Fused::reduces() const {
  return std::any_of(insts.begin(), insts.end(),
                     [](const Inst& i) { return i.kind == InstKind::reduction; });
}

bool Fused::scans() const {
  return std::any_of(insts.begin(), insts.end(),
                     [](const Inst& i) { return i.kind == InstKind::scan; });
}

int Fused::max_depth() const {
  int depth = 0;
  for (const Inst& inst : insts) depth = std::max(depth, inst.depth);
  return depth;
}

bool gathers_along(const Fused& fused, const Operand& operand) {
  return std::any_of(operand.starts.begin(), operand.starts.end(), [&](const Start& start) {
    if (start.index < 0) return false;
    const auto& axes = fused.inputs[size_t(start.index)].axes;
    return std::any_of(axes.begin(), axes.end(),
                       [&](int axis) { return axis >= 0 && fused.axes[size_t(axis)].reduced; });
  });
}

namespace {

// Whether the graph reshapes the value `cut` on the way to every output.
bool is_reshaped(const Region& region, const std::string& cut) {
  const Graph& graph = region.source.graph;
  const Value* value = cut.empty() ? nullptr : graph.find(cut);
  if (!value) return false;
  for (const Region::Output& output : region.outputs) {
    const Value* result = graph.find(output.value);
    if (!result || output.part || output.write || result->shape == value->shape ||
        !group_axes(result->shape, value->shape))
      return false;
  }
  return true;
}

// If the store of the output repeats the cast `inst`, returns the instruction before the cast.
int before_cast(const Fused& fused, int inst, DType dtype) {
  const Inst& i = fused.insts[size_t(inst)];
  const bool rounds = i.code == fmt::format("cutegen::round_to<{}>({{0}})", device_type(dtype)) ||
                      (i.code == "truncf({0})" && is_integer(dtype));
  if (i.kind != InstKind::pointwise || !rounds) return inst;
  const Inst& from = fused.insts[size_t(i.inputs[0])];
  return from.boolean || from.integer ? inst : i.inputs[0];
}

// Writes the sizes of axes, "@3", in the expressions of kernel parameters.
void resolve_sizes(Fused& fused) {
  for (auto& [word, expression] : fused.sizes)
    if (const size_t at = expression.find('@'); at != std::string::npos) {
      size_t end = at + 1;
      while (end < expression.size() && std::isdigit(static_cast<unsigned char>(expression[end])))
        ++end;
      const auto axis = size_t(std::stoul(expression.substr(at + 1, end - at - 1)));
      expression.replace(at, end - at, "(" + fused.axes[axis].extent + ")");
    }
}

// Finds the sizes of the outputs that go to scratch.
Result<void> find_kept_extents(const Region& region, Fused& fused) {
  for (size_t i = 0; i < fused.outputs.size(); ++i) {
    FusedOutput& output = fused.outputs[i];
    if (!output.operand.kept || region.outputs[i].write) continue;
    CG_TRY(output.operand.extents, extents_of(fused, output));
    const auto& part = region.outputs[i].part;
    if (!part || part->whole.empty()) continue;
    // The parts begin at constant positions, so their lengths must be constant, too.
    std::string& extent = output.operand.extents[part->axis];
    demand(fused, fmt::format("{} == {}", extent, part->length));
    extent = part->whole;
  }
  return {};
}

// Where the part of an output begins: after the values before it, if their sizes are known.
Start start_of(const Builder& builder, const Region::Part& part) {
  std::string sum;
  for (const std::string& value : part.before) {
    const auto extent = builder.sizes().extent_of(value, part.axis);
    if (!extent) return part.start;
    sum += (sum.empty() ? "" : "+") + *extent;
  }
  if (sum.empty()) return part.start;
  return {.at = part.start.at, .from = sum};
}

// Adds what the start of an output's part requires of the output's size.
void demand_part(Fused& fused, const Operand& operand, size_t axis) {
  const Start& start = operand.starts[axis];
  if (start.by_number) demand_size(fused, operand, axis);
  if (start.step > 1) demand_parts(fused, operand, axis);
}

// If reductions read values whose sizes may differ at other shapes, returns the result of the first
// one. An earlier stage can compute it in a loop nest of its own.
std::string find_loose_cut(const Region& region, const std::vector<const Node*>& nodes,
                           const Fused& fused) {
  if (has_one_size(fused, region)) return "";
  std::string first;
  for (const Node* node : nodes) {
    const auto reduction = find_reduction(region.source.graph, *node);
    if (!reduction || !*reduction) continue;
    if (!first.empty()) return first;  // another reduction remains
    first = node->outputs.front().name;
  }
  return "";
}

// Fuses the region along the axes of the value `seen` or, if `seen` is empty, of the outputs.
Attempt fuse_along(const Region& region, const std::string& seen) {
  const Graph& graph = region.source.graph;
  std::string cut;
  std::vector<std::vector<size_t>> apart;
  EqualSizes equal;
  auto run = [&]() -> Result<Fused> {
    std::vector<std::string> wanted;
    wanted.reserve(region.outputs.size());
    for (const Region::Output& output : region.outputs) wanted.push_back(output.value);
    auto nodes = nodes_above(graph, wanted, region.kept);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      if (has_own_stage(**node) && !region.kept.count((*node)->outputs.front().name)) {
        cut = (*node)->outputs.front().name;
        return unsupported_error("no recipe fuses " + (*node)->op + " here", (*node)->id);
      }
    CG_CHECK(check_operators(graph, nodes));
    CG_TRY(std::vector<Axis> axes, find_axes(region, nodes, seen, cut));
    Builder builder(region, std::move(axes));
    Fused& fused = builder.fused();
    const auto scanned = [&](int axis) { return axis >= 0 && fused.axes[size_t(axis)].reduced; };
    for (const Region::Output& output : region.outputs) {
      const Value* value = graph.find(output.value);
      if (!value) return unsupported_error("an output that no node computes");
      if (device_type(output.dtype).empty())
        return unsupported_error(
            fmt::format("output {} of dtype {}", output.tensor, to_string(output.dtype)));
      Shape shape = value->shape;
      std::vector<Start> starts;
      if (output.part) {
        shape[output.part->axis] = output.part->length;
        starts.resize(shape.size());
        starts[output.part->axis] = start_of(builder, *output.part);
      }
      CG_TRY(Place place, place_output(shape, fused.axes));
      auto inst = builder.value(value->name,
                                {.axes = place.axes, .reshaped = place.reshaped, .starts = starts});
      if (!inst) {
        // If the output itself does not fit this nest, keep the reduction's result instead.
        if (std::find(wanted.begin(), wanted.end(), builder.cut()) == wanted.end())
          cut = builder.cut();
        return fail(inst.error());
      }
      if (fused.scans() && std::none_of(place.axes.begin(), place.axes.end(), scanned))
        return unsupported_error("an output that lacks the scanned axis");
      Operand operand{.tensor = output.tensor,
                      .dtype = output.dtype,
                      .shape = place.reshaped.value_or(value->shape),
                      .axes = place.axes,
                      .reshaped = place.reshaped.has_value(),
                      .original = value->shape,
                      .kept = output.kept,
                      .extents = {},
                      .parts = {}};
      operand.starts = std::move(starts);
      if (output.write) {
        if (place.reshaped ||
            (!output.write->index.empty() && (fused.reduces() || fused.scans()))) {
          cut = value->name;
          return unsupported_error("a mutated tensor whose new value must be computed first");
        }
        if (output.kept) operand.extents = region.kept.at(output.tensor);
        if (auto aimed = builder.aim(operand, *output.write); !aimed) {
          cut = builder.cut();
          return fail(aimed.error());
        }
      }
      if (output.part && !output.kept) demand_part(fused, operand, output.part->axis);
      const int result = before_cast(fused, *inst, operand.dtype);
      fused.outputs.push_back({.operand = std::move(operand), .inst = result});
    }
    cut.clear();
    apart = tied_outputs(fused, region);
    if (apart.size() < 2) apart.clear();
    if (apart.empty()) cut = find_loose_cut(region, nodes, fused);
    if (!apart.empty() || !cut.empty()) {
      equal = untied_sizes(fused, region);
      return unsupported_error("values whose sizes may differ at other shapes");
    }
    if (auto found = find_extents(fused); !found) {
      cut = builder.unsized();
      return fail(found.error());
    }
    resolve_sizes(fused);
    CG_CHECK(find_kept_extents(region, fused));
    return std::move(fused);
  };
  Result<Fused> fused = run();
  return {
      .fused = std::move(fused), .cut = cut, .apart = std::move(apart), .equal = std::move(equal)};
}

}  // namespace

Attempt fuse(const Region& region) {
  Attempt attempt = fuse_along(region, "");
  if (attempt.fused) return attempt;
  // If the graph reshapes a broadcast or transposed value, a nest over the axes of this value may
  // compute the outputs.
  if (is_reshaped(region, attempt.cut)) {
    Attempt before = fuse_along(region, attempt.cut);
    if (before.fused && !before.fused->reduces() && !before.fused->scans()) return before;
  }
  return attempt;
}

std::vector<const Node*> nodes_above(const Graph& graph, std::vector<std::string> work,
                                     const Kept& kept) {
  std::set<const Node*> seen;
  while (!work.empty()) {
    std::string name = work.back();
    work.pop_back();
    const Node* node = kept.count(name) ? nullptr : graph.producer(name);
    // A fill such as zeros_like(x) takes only the sizes of x.
    if (!node || !seen.insert(node).second || is_like(*node)) continue;
    for (const std::string& input : inputs_of(*node)) work.push_back(input);
  }
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes)
    if (seen.count(&node)) nodes.push_back(&node);
  return nodes;
}

Result<Graph> prepare(const Task& task) {
  CG_TRY(auto writes, find_writes(task));
  const auto results = results_in_order(task, writes);
  Graph given = task.graph;
  if (given.outputs.size() < results.size())  // a rewritten graph already has the final values
    for (const Write& write : writes)
      if (write.whole) given.outputs.push_back(write.source);
  if ((given.outputs.empty() && writes.empty()) || results.size() != given.outputs.size())
    return unsupported_error("the graph's outputs differ from the task's");
  if (task.graph.nodes.size() > kMaxNodes) return unsupported_error("more than 4096 operators");
  // A graph with a warning lacks something, so its program would be wrong.
  if (!task.graph.warnings.empty()) return unsupported_error(task.graph.warnings.front());
  CG_TRY(Graph graph, without_in_place(std::move(given)));
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = graph.find(graph.outputs[i]);
    if (!value || value->shape != results[i]->shape)
      return unsupported_error("the graph's outputs differ from the task's");
  }
  std::set<std::string> written;
  for (const Write& write : writes) written.insert({write.source, write.index});
  graph = merge_equal_nodes(expand_composites(graph), std::move(written));
  return normalize_scans(fold_cut_results(fold_zero_pads(line_pools(std::move(graph)))));
}

std::vector<Region::Output> outputs_of(const Task& task, const Graph& graph) {
  std::vector<Region::Output> list;
  auto writes = find_writes(task);
  const auto results = results_in_order(task, writes ? *writes : std::vector<Write>());
  list.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i)
    list.push_back(
        {.tensor = results[i]->name, .value = graph.outputs[i], .dtype = results[i]->dtype});
  if (writes)
    for (Write& write : *writes) {
      if (write.whole) continue;
      Region::Output output{
          .tensor = write.tensor, .value = write.source, .dtype = task.find(write.tensor)->dtype};
      output.write = std::move(write);
      list.push_back(std::move(output));
    }
  return list;
}

Result<Fused> fuse_graph(const Task& task, const Graph& graph) {
  CG_TRY(
      Decomposed source,
      decompose(earlier_moves(later_views(slices_before_views(finer_views(einsum_views(graph))))),
                task));
  return fuse(Region{.source = source,
                     .names = short_names(task),
                     .kept = {},
                     .outputs = outputs_of(task, graph)})
      .fused;
}

Result<Fused> fuse(const Task& task) {
  CG_TRY(Graph graph, prepare(task));
  return fuse_graph(task, graph);
}

}  // namespace cutegen::recipes
