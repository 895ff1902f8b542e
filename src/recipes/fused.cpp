// SPDX-License-Identifier: Apache-2.0
#include "recipes/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "recipes/builder.h"
#include "recipes/names.h"
#include "recipes/pointwise.h"
#include "recipes/reductions.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMaxNodes = 4096;
constexpr int64_t kMaxRow = int64_t{1} << 24;  // elements that one CTA reduces

void rename(Json& json, const std::map<std::string, std::string>& names) {
  if (auto ref = reference(json)) {
    auto it = names.find(*ref);
    if (it != names.end()) json["ref"] = it->second;
  } else if (json.is_array()) {
    for (Json& item : json) rename(item, names);
  }
}

// The graph without in-place operators: later readers of the written value read the new one.
Result<Graph> without_in_place(Graph graph) {
  std::map<std::string, std::string> now;
  for (Node& node : graph.nodes) {
    for (Json& arg : node.args) rename(arg, now);
    for (auto& [key, arg] : node.kwargs.items()) rename(arg, now);
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

}  // namespace

std::vector<const Node*> reachable(const Graph& graph) {
  std::set<const Node*> seen;
  std::vector<std::string> work = graph.outputs;
  while (!work.empty()) {
    const Node* node = graph.producer(work.back());
    work.pop_back();
    if (!node || !seen.insert(node).second) continue;
    std::vector<const Json*> args;
    for (const Json& arg : node->args) args.push_back(&arg);
    for (const auto& [key, arg] : node->kwargs.items()) args.push_back(&arg);
    while (!args.empty()) {
      const Json* arg = args.back();
      args.pop_back();
      if (auto ref = reference(*arg)) work.push_back(*ref);
      if (arg->is_array())
        for (const Json& item : *arg) args.push_back(&item);
    }
  }
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes)
    if (seen.count(&node)) nodes.push_back(&node);
  return nodes;
}

namespace {

// The first operator that no recipe has a rule for.
Result<void> check_operators(const Graph& graph, const std::vector<const Node*>& nodes) {
  for (const Node* node : nodes) {
    if (is_view(*node) || is_fill(*node) || node->op.find("getitem") != std::string::npos) continue;
    CG_TRY(auto reduction, find_reduction(graph, *node));
    if (reduction) continue;
    CG_TRY(auto pointwise, lower_pointwise(*node));
    if (!pointwise) return unsupported_error("no recipe covers " + node->op, node->id);
  }
  return {};
}

// The loop nest: axes of the reductions' common input, or of the outputs.
Result<std::vector<Axis>> find_axes(const Graph& graph, const std::vector<const Node*>& nodes) {
  std::optional<Reduction> first;
  for (const Node* node : nodes) {
    CG_TRY(auto r, find_reduction(graph, *node));
    if (!r) continue;
    if (!first) first = r;
    if (r->shape != first->shape || r->axes != first->axes)
      return unsupported_error(
          fmt::format("{}: reduces other axes or another shape than {}", node->op, first->base),
          node->id);
  }
  std::vector<Axis> axes;
  const Value* output = graph.find(graph.outputs.front());
  if (!output) return unsupported_error("an output that no node makes");
  for (int64_t size : first ? first->shape : output->shape) axes.push_back({size, false, ""});
  int64_t row = 1;
  if (first)
    for (int axis : first->axes) {
      axes[static_cast<size_t>(axis)].reduced = true;
      row *= std::max<int64_t>(1, first->shape[static_cast<size_t>(axis)]);
    }
  if (row > kMaxRow)
    return unsupported_error(
        fmt::format("{} over {} elements: no recipe splits a row over CTAs", first->base, row));
  return axes;
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  for (int64_t size : shape)
    if (size != 1) rest.push_back(size);
  return rest;
}

// Where an output's axes lie in the nest, by its shape: everything, reduced axes kept as 1, reduced
// axes dropped, or either of these up to axes of size 1.
Result<std::vector<int>> place_output(const Shape& shape, const std::vector<Axis>& axes) {
  Shape all, kept;
  std::vector<int> all_axes, kept_axes, keepdim_axes;
  Shape keepdim;
  for (size_t i = 0; i < axes.size(); ++i) {
    all.push_back(axes[i].size);
    all_axes.push_back(static_cast<int>(i));
    keepdim.push_back(axes[i].reduced ? 1 : axes[i].size);
    keepdim_axes.push_back(axes[i].reduced ? -1 : static_cast<int>(i));
    if (axes[i].reduced) continue;
    kept.push_back(axes[i].size);
    kept_axes.push_back(static_cast<int>(i));
  }
  if (shape == all) return all_axes;
  if (shape == keepdim) return keepdim_axes;
  if (shape == kept) return kept_axes;
  for (bool whole : {true, false}) {
    const Shape& sizes = whole ? all : kept;
    const std::vector<int>& ids = whole ? all_axes : kept_axes;
    if (without_ones(shape) != without_ones(sizes)) continue;
    std::vector<int> map(shape.size(), -1);
    size_t next = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      while (sizes[next] == 1) ++next;
      map[i] = ids[next++];
    }
    return map;
  }
  return unsupported_error(fmt::format("an output of shape {} does not follow the axes of {}",
                                       to_string(shape), to_string(all)));
}

}  // namespace

// The expression for the size of every axis, from a tensor of the task that has it.
Result<void> find_extents(Fused& fused) {
  std::vector<const Operand*> operands;
  for (const Operand& operand : fused.inputs)
    if (fused.names.count(operand.tensor)) operands.push_back(&operand);
  for (const FusedOutput& output : fused.outputs) operands.push_back(&output.operand);
  for (const Operand* operand : operands) {
    if (operand->reshaped) continue;
    for (size_t i = 0; i < operand->axes.size(); ++i) {
      if (operand->axes[i] < 0) continue;
      Axis& axis = fused.axes[static_cast<size_t>(operand->axes[i])];
      if (axis.extent.empty() && axis.size == operand->shape[i])
        axis.extent = fmt::format("dim({},{})", fused.names.at(operand->tensor), i);
    }
  }
  // One axis may be left to a reshaped operand: its size is the rest of that tensor's elements.
  for (const Operand* operand : operands) {
    if (!operand->reshaped) continue;
    std::string known;
    std::vector<Axis*> missing;
    for (int id : operand->axes) {
      if (id < 0) continue;
      Axis& axis = fused.axes[static_cast<size_t>(id)];
      if (axis.extent.empty())
        missing.push_back(&axis);
      else
        known += (known.empty() ? "" : "*") + axis.extent;
    }
    if (missing.size() != 1) continue;
    const std::string& tensor = fused.names.at(operand->tensor);
    missing[0]->extent = known.empty() ? fmt::format("size({})", tensor)
                                       : fmt::format("size({})/max(1,{})", tensor, known);
  }
  for (size_t i = 0; i < fused.axes.size(); ++i)
    if (fused.axes[i].extent.empty())
      return unsupported_error(fmt::format("the size of axis {} is not a tensor's", i));
  return {};
}

bool Fused::reduces() const {
  return std::any_of(insts.begin(), insts.end(),
                     [](const Inst& i) { return i.kind == InstKind::reduction; });
}

int Fused::max_depth() const {
  int depth = 0;
  for (const Inst& inst : insts) depth = std::max(depth, inst.depth);
  return depth;
}

Result<Graph> prepare(const Task& task) {
  for (const TensorInfo& tensor : task.tensors)
    if (tensor.mutated)
      return unsupported_error("the reference writes " + tensor.name + " in place");
  auto results = task.with_role(TensorRole::output);
  if (task.graph.outputs.empty() || results.size() != task.graph.outputs.size())
    return unsupported_error("the graph's outputs are not the task's");
  if (task.graph.nodes.size() > kMaxNodes) return unsupported_error("more than 4096 operators");
  return without_in_place(task.graph);
}

Result<Fused> fuse_graph(const Task& task, const Graph& graph) {
  auto results = task.with_role(TensorRole::output);
  auto nodes = reachable(graph);
  CG_CHECK(check_operators(graph, nodes));
  CG_TRY(std::vector<Axis> axes, find_axes(graph, nodes));
  Builder builder(graph, std::move(axes));
  builder.fused().names = short_names(task);
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = graph.find(graph.outputs[i]);
    if (!value) return unsupported_error("an output that no node makes");
    if (value->shape != results[i]->shape || device_type(results[i]->dtype).empty())
      return unsupported_error(
          fmt::format("output {} of dtype {}", results[i]->name, to_string(results[i]->dtype)));
    CG_TRY(auto map, place_output(value->shape, builder.fused().axes));
    CG_TRY(int inst, builder.value(value->name, {map, {}}));
    builder.fused().outputs.push_back(
        {{results[i]->name, results[i]->dtype, results[i]->shape, map, false}, inst});
  }
  CG_CHECK(find_extents(builder.fused()));
  return std::move(builder.fused());
}

Result<Fused> fuse(const Task& task) {
  CG_TRY(Graph graph, prepare(task));
  return fuse_graph(task, graph);
}

}  // namespace cutegen::recipes
