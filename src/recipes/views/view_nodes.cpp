// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/view_nodes.h"

#include <set>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

bool is_reshape(const Node& node) {
  static const std::set<std::string> kViews{"view", "reshape", "_unsafe_view"};
  return node.op.starts_with("aten.") && kViews.count(base_name(node.op));
}

const Value* input_of(const Graph& graph, const Node& node) {
  const auto name = reference(argument(node, 0, "self"));
  return name ? graph.find(*name) : nullptr;
}

Node node_of(const std::string& id, const std::string& op, const std::string& from, Json argument,
             Value result) {
  Node node;
  node.id = id;
  node.op = op;
  node.args = {{{"ref", from}}, std::move(argument)};
  node.outputs = {std::move(result)};
  return node;
}

}  // namespace cutegen::recipes
