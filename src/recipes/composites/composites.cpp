// SPDX-License-Identifier: Apache-2.0
#include "recipes/composites/composites.h"

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

Rule rule_of(const std::string& base) {
  for (const auto& find : {loss_rule, product_rule, move_rule, part_rule, pooling_rule,
                           scatter_rule, search_rule, recurrence_rule})
    if (Rule rule = find(base)) return rule;
  return nullptr;
}

// Replaces the nodes that have a rule. Sets `changed` if there were any.
Graph pass(const Graph& graph, bool& changed) {
  Graph out;
  out.placeholders = graph.placeholders;
  out.outputs = graph.outputs;
  out.warnings = graph.warnings;
  for (const Node& node : graph.nodes) {
    const bool aten = node.op.rfind("aten.", 0) == 0 && !node.outputs.empty();
    const Rule rule = aten ? rule_of(base_name(node.op)) : nullptr;
    Expansion expansion(out, graph, node);
    if (rule && rule(expansion))
      changed = true;
    else
      out.nodes.push_back(node);
  }
  return out;
}

}  // namespace

Graph expand_composites(const Graph& graph) {
  constexpr int kDepth = 3;  // a rule may write composite nodes, which the next pass replaces
  Graph now = graph;
  bool changed = true;
  for (int i = 0; i < kDepth && changed; ++i) {
    changed = false;
    now = pass(now, changed);
  }
  return now;
}

Graph expand_triangles(const Graph& graph) {
  Graph out = graph;
  out.nodes.clear();
  for (const Node& node : graph.nodes) {
    const std::string base = node.outputs.empty() ? "" : base_name(node.op);
    const auto name =
        base == "triu" || base == "tril" ? reference(argument(node, 0, "self")) : std::nullopt;
    const Value* x = name ? graph.find(*name) : nullptr;
    const auto by = number(argument(node, 1, "diagonal"));
    if (!x || x->shape.size() < 2)
      out.nodes.push_back(node);
    else
      NodeWriter(out, graph, node).triangle(*x, base == "triu", int64_t(by.value_or(0)));
  }
  return out;
}

}  // namespace cutegen::recipes
