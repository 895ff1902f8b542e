// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/einsum_views.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"
#include "recipes/views/view_nodes.h"

namespace cutegen::recipes {
namespace {

// What a view reads: some axes of `source` in this order, and axes of size 1.
struct EinsumOperand {
  const Value* source = nullptr;
  std::vector<size_t> order;
};

// The chain of permutations and unsqueezes before a view; nothing if no axis was added.
std::optional<EinsumOperand> operand_of(const Graph& graph, const Node& view) {
  const Value* value = input_of(graph, view);
  if (!value) return std::nullopt;
  // The axis of `value` for each axis that the view reads; nothing for an added axis.
  std::vector<std::optional<size_t>> axes(value->shape.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  bool added = false;
  for (const Node* node = graph.producer(value->name); node && node->op.starts_with("aten.");
       node = graph.producer(value->name)) {
    const std::string base = base_name(node->op);
    const auto step = permutation(*node, base, value->shape.size());
    if (!step.empty()) {
      for (auto& axis : axes)
        if (axis) axis = step[*axis];
    } else if (base == "unsqueeze" && argument(*node, 1, "dim").is_number_integer()) {
      int64_t dim = argument(*node, 1, "dim").get<int64_t>();
      if (dim < 0) dim += int64_t(value->shape.size());
      for (auto& axis : axes) {
        if (axis == size_t(dim))
          axis.reset();
        else if (axis && *axis > size_t(dim))
          --*axis;
      }
      added = true;
    } else if (base != "clone") {
      break;
    }
    value = input_of(graph, *node);
    if (!value) return std::nullopt;
  }
  if (!added) return std::nullopt;
  EinsumOperand chain{.source = value, .order = {}};
  for (const auto& axis : axes)
    if (axis) chain.order.push_back(*axis);
  return chain;
}

// Runs of axes of the source that the view merges, in the order of the view's axes; nothing if the
// axes of a run are no neighbours, or if the view splits an axis.
std::optional<std::vector<std::vector<size_t>>> runs_of(const EinsumOperand& chain,
                                                        const Shape& to) {
  Shape turned;
  for (const size_t axis : chain.order) turned.push_back(chain.source->shape[axis]);
  const auto groups = group_axes(turned, to);
  if (!groups) return std::nullopt;
  std::vector<std::vector<size_t>> runs;
  for (const AxisGroup& group : *groups) {
    const auto wide =
        std::count_if(group.to.begin(), group.to.end(), [&](size_t axis) { return to[axis] != 1; });
    if (wide > 1) return std::nullopt;
    std::vector<size_t> run;
    for (const size_t at : group.from) run.push_back(chain.order[at]);
    for (size_t i = 1; i < run.size(); ++i)
      if (run[i] != run[i - 1] + 1) return std::nullopt;
    runs.push_back(std::move(run));
  }
  return runs;
}

// A permutation of the source, without the axes of size 1, and the view `whole` of it.
std::vector<Node> permuted(const EinsumOperand& chain, Node whole, const Value& result) {
  Value turned{.name = result.name + "~turned", .dtype = result.dtype, .shape = {}};
  for (const size_t axis : chain.order) turned.shape.push_back(chain.source->shape[axis]);
  whole.args[0] = {{"ref", turned.name}};
  return {node_of(whole.id + "_turned", "aten.permute.default", chain.source->name, chain.order,
                  turned),
          std::move(whole)};
}

// The nodes that replace the view, or none.
std::vector<Node> simpler(const Graph& graph, const Node& view) {
  const auto chain = is_reshape(view) ? operand_of(graph, view) : std::nullopt;
  if (!chain) return {};
  const Value& result = view.outputs.front();
  Node whole = node_of(view.id, "aten.view.default", chain->source->name, result.shape, result);
  whole.sizes = view.sizes;
  if (std::is_sorted(chain->order.begin(), chain->order.end())) return {std::move(whole)};
  auto runs = runs_of(*chain, result.shape);
  if (!runs) return permuted(*chain, std::move(whole), result);
  // The runs in the source's order are the axes of one view of the source.
  std::vector<std::vector<size_t>> sorted = *runs;
  std::sort(sorted.begin(), sorted.end());
  Value merged{.name = result.name + "~merged", .dtype = result.dtype, .shape = {}},
      turned{.name = result.name + "~turned", .dtype = result.dtype, .shape = {}};
  for (const auto& run : sorted) {
    int64_t size = 1;
    for (const size_t axis : run) size *= chain->source->shape[axis];
    merged.shape.push_back(size);
  }
  Json order = Json::array();
  for (const auto& run : *runs) {
    const auto at = size_t(std::find(sorted.begin(), sorted.end(), run) - sorted.begin());
    order.push_back(at);
    turned.shape.push_back(merged.shape[at]);
  }
  std::vector<Node> nodes;
  const bool last = turned.shape == result.shape;
  nodes.push_back(
      node_of(view.id + "_merged", "aten.view.default", chain->source->name, merged.shape, merged));
  nodes.push_back(node_of(last ? view.id : view.id + "_turned", "aten.permute.default", merged.name,
                          order, last ? result : turned));
  if (last) return nodes;
  whole.args[0] = {{"ref", turned.name}};
  nodes.push_back(std::move(whole));
  return nodes;
}

}  // namespace

Graph einsum_views(Graph graph) {
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) {
    std::vector<Node> instead = simpler(graph, node);
    if (instead.empty()) instead.push_back(node);
    for (Node& one : instead) nodes.push_back(std::move(one));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace cutegen::recipes
