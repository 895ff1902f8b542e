// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/equal_nodes.h"

#include <algorithm>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// Two nodes with equal keys compute the same values.
std::string key_of(const Node& node) {
  Json key{node.op, node.args, node.kwargs};
  for (const SizeArgument& s : node.sizes)
    key.push_back({s.index, s.tensor, s.dim, s.item, s.plus, s.share, s.fixed});
  for (const Value& value : node.outputs) key.push_back({int(value.dtype), value.shape});
  return key.dump();
}

// A node whose calls give different values: aten.rand, aten.bernoulli, aten.native_dropout, ...
bool is_random(const Node& node) {
  for (const char* word : {"rand", "bernoulli", "dropout", "normal_", "uniform", "multinomial"})
    if (node.op.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

void rename_values(Json& argument, const std::map<std::string, std::string>& names) {
  if (auto name = reference(argument)) {
    auto it = names.find(*name);
    if (it != names.end()) argument["ref"] = it->second;
  } else if (argument.is_array()) {
    for (Json& item : argument) rename_values(item, names);
  }
}

Graph merge_equal_nodes(Graph graph, std::set<std::string> kept) {
  kept.insert(graph.outputs.begin(), graph.outputs.end());
  for (const auto& [tensor, value] : graph.finals) kept.insert(value);
  const auto is_kept = [&](const Value& value) { return kept.contains(value.name); };
  std::map<std::string, std::vector<Value>> first;  // by key: the values of the first node
  std::map<std::string, std::string> others;        // by value: the value that replaces it
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    for (Json& argument : node.args) rename_values(argument, others);
    for (auto& [name, argument] : node.kwargs.items()) rename_values(argument, others);
    if (!node.outputs.empty() && !is_in_place(node.op) && !is_random(node) &&
        std::ranges::none_of(node.outputs, is_kept)) {
      const auto [it, added] = first.try_emplace(key_of(node), node.outputs);
      if (!added) {
        for (size_t i = 0; i < node.outputs.size(); ++i)
          others[node.outputs[i].name] = it->second[i].name;
        continue;
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace cutegen::recipes
