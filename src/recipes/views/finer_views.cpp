// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/finer_views.h"

#include <algorithm>
#include <optional>
#include <set>

#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"
#include "recipes/views/view_nodes.h"

namespace cutegen::recipes {
namespace {

// Products of an axis and all axes behind it, the innermost first, without axes of size 1.
std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> products;
  int64_t product = 1;
  for (size_t i = shape.size(); i-- > 0;)
    if (shape[i] != 1) products.push_back(product *= shape[i]);
  return products;
}

// Returns the coarsest shape from which merging neighbouring axes gives both shapes; nothing if
// there is none.
std::optional<Shape> common_refinement(const Shape& a, const Shape& b) {
  if (product(a) == 0 || product(a) != product(b)) return std::nullopt;
  std::vector<int64_t> products = strides_of(a);
  const std::vector<int64_t> more = strides_of(b);
  products.insert(products.end(), more.begin(), more.end());
  std::sort(products.begin(), products.end());
  products.erase(std::unique(products.begin(), products.end()), products.end());
  Shape shape;
  int64_t behind = 1;
  for (const int64_t product : products) {
    if (product % behind != 0) return std::nullopt;
    shape.insert(shape.begin(), product / behind);
    behind = product;
  }
  return shape;
}

// For each axis of `merged`, the axes of `fine` that it merges; `fine` is a refinement of it.
std::vector<std::vector<size_t>> parts_of(const Shape& fine, const Shape& merged) {
  std::vector<std::vector<size_t>> parts(merged.size());
  size_t next = 0;
  for (size_t i = 0; i < merged.size(); ++i)
    for (int64_t size = 1; size < merged[i]; ++next) {
      parts[i].push_back(next);
      size *= fine[next];
    }
  return parts;
}

// What a view reads: transpositions, as one order of axes, of a view of a tensor.
struct Chain {
  const Node* view;           // the first view
  std::vector<size_t> order;  // of its axes
};

std::optional<Chain> chain_of(const Graph& graph, const Node& last) {
  const Value* value = input_of(graph, last);
  std::vector<size_t> order;
  while (value) {
    const Node* node = graph.producer(value->name);
    if (!node || !node->op.starts_with("aten.")) return std::nullopt;
    const auto step = permutation(*node, base_name(node->op), value->shape.size());
    if (step.empty())
      return is_reshape(*node) && !order.empty()
                 ? std::optional(Chain{.view = node, .order = order})
                 : std::nullopt;
    if (order.empty())
      order = step;
    else
      for (size_t& axis : order) axis = step[axis];
    value = input_of(graph, *node);
  }
  return std::nullopt;
}

Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

// The sizes of the view's list, for the axes that stay whole in the finer view.
std::vector<SizeArgument> finer_sizes(const Node& view,
                                      const std::vector<std::vector<size_t>>& parts) {
  std::vector<SizeArgument> sizes;
  for (SizeArgument size : view.sizes) {
    if (size.item < 1 || size_t(size.item) > parts.size()) continue;
    const std::vector<size_t>& axes = parts[size_t(size.item) - 1];
    if (axes.size() != 1) continue;
    size.item = int(axes[0]) + 1;
    sizes.push_back(std::move(size));
  }
  return sizes;
}

// The nodes that replace the view, or none.
std::vector<Node> finer(const Graph& graph, const Node& last) {
  const auto chain = is_reshape(last) ? chain_of(graph, last) : std::nullopt;
  const Value* from = chain ? input_of(graph, *chain->view) : nullptr;
  if (!from) return {};
  const Shape& merged = chain->view->outputs.front().shape;
  const auto fine = common_refinement(from->shape, merged);
  if (!fine || *fine == merged) return {};
  const auto parts = parts_of(*fine, merged);
  std::vector<size_t> order;
  Shape turned;
  for (const size_t axis : chain->order)
    for (const size_t part : parts[axis]) {
      order.push_back(part);
      turned.push_back((*fine)[part]);
    }
  const Value& result = last.outputs.front();
  if (turned != without_ones(result.shape)) return {};
  Value view{.name = result.name + "~finer", .dtype = result.dtype, .shape = *fine},
      turn{.name = result.name + "~turned", .dtype = result.dtype, .shape = turned};
  Node finer = node_of(last.id + "_finer", "aten.view.default", from->name, *fine, view);
  finer.sizes = finer_sizes(*chain->view, parts);
  Node again = node_of(last.id, "aten.view.default", turn.name, result.shape, result);
  again.sizes = last.sizes;
  return {std::move(finer),
          node_of(last.id + "_turned", "aten.permute.default", view.name, order, turn),
          std::move(again)};
}

}  // namespace

Graph finer_views(Graph graph) {
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) {
    std::vector<Node> instead = finer(graph, node);
    if (instead.empty()) instead.push_back(node);
    for (Node& one : instead) nodes.push_back(std::move(one));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace cutegen::recipes
