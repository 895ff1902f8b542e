// SPDX-License-Identifier: Apache-2.0
#include "recipes/spatial/line_pools.h"

#include <algorithm>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kLists = 5;  // self, kernel, stride, padding, dilation

const Node* producer_of(const Graph& graph, const Node& node) {
  auto name = reference(argument(node, 0, "self"));
  return name ? graph.producer(*name) : nullptr;
}

bool is_view(const Node& node, const char* op) {
  return base_name(node.op) == op && node.outputs.size() == 1;
}

// Removes the first of two numbers, which must be `expected`. An empty list stays empty. False: the
// list is neither.
bool drop_first(Json& list, int64_t expected) {
  if (!list.is_array()) return false;
  if (list.empty()) return true;
  const bool whole = std::all_of(list.begin(), list.end(),
                                 [](const Json& number) { return number.is_number_integer(); });
  if (!whole || list.size() != 2 || list[0] != expected) return false;
  list = Json::array({list[1]});
  return true;
}

// Returns the pooling as one along the last axis of `x` only; nothing if it also pools the axis
// before it.
std::optional<Node> line_pool(const Node& pool, const Json& x) {
  const std::string name = base_name(pool.op);
  const bool max = name == "max_pool2d_with_indices" || name == "max_pool2d";
  if (!max && name != "avg_pool2d") return std::nullopt;
  Node line = pool;
  line.op = max ? "aten.max_pool1d.default" : "aten.avg_pool1d.default";
  if (line.args.size() < (max ? kLists : kLists - 1)) return std::nullopt;
  line.args[0] = x;
  if (!drop_first(line.args[1], 1) || !drop_first(line.args[2], 1) ||
      !drop_first(line.args[3], 0) || (max && !drop_first(line.args[4], 1)))
    return std::nullopt;
  return line;
}

}  // namespace

Graph line_pools(Graph graph) {
  for (Node& squeeze : graph.nodes) {
    const Node* pool = is_view(squeeze, "squeeze") ? producer_of(graph, squeeze) : nullptr;
    const Node* unsqueeze = pool ? producer_of(graph, *pool) : nullptr;
    if (!unsqueeze || !is_view(*unsqueeze, "unsqueeze")) continue;
    const auto x = reference(argument(*unsqueeze, 0, "self"));
    const Value* input = x ? graph.find(*x) : nullptr;
    if (!input || input->shape.size() != 3 || squeeze.outputs[0].shape.size() != 3) continue;
    const Shape &in = input->shape, &added = unsqueeze->outputs[0].shape;
    if (added != Shape{in[0], in[1], 1, in[2]}) continue;
    auto line = line_pool(*pool, unsqueeze->args[0]);
    if (!line) continue;
    line->id = squeeze.id;
    line->outputs = squeeze.outputs;
    squeeze = std::move(*line);
  }
  return graph;
}

}  // namespace cutegen::recipes
