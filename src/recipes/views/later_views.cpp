// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/later_views.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

bool is_one_of(const Node& node, const std::set<std::string>& names) {
  return node.op.starts_with("aten.") && names.count(base_name(node.op));
}

// Whether the value is a slice, perhaps copied or cast.
bool is_sliced(const Graph& graph, const Value* value) {
  static const std::set<std::string> kSlices{"slice", "narrow", "select", "split",
                                             "split_with_sizes"};
  static const std::set<std::string> kCopies{"clone", "_to_copy", "contiguous", "alias"};
  while (value) {
    const Node* node = graph.producer(value->name);
    if (!node) return false;
    if (is_one_of(*node, kSlices)) return true;
    const auto from = is_one_of(*node, kCopies) ? reference(argument(*node, 0, "self"))
                                                : std::optional<std::string>();
    value = from ? graph.find(*from) : nullptr;
  }
  return false;
}

// The operator on what the view merges, or nothing if the operator needs the merged axis.
std::optional<Node> applied_before(const Node& node, const Value& source) {
  static const std::set<std::string> kRows{"_log_softmax", "log_softmax", "_softmax", "softmax"};
  static const std::set<std::string> kElements{"_to_copy", "mul", "div", "add", "sub",
                                               "neg",      "exp", "log", "tanh"};
  if (node.outputs.size() != 1) return std::nullopt;
  Node out = node;
  if (is_one_of(node, kRows)) {
    const auto rank = int64_t(node.outputs[0].shape.size());
    if (node.args.size() < 2 || !node.args[1].is_number_integer()) return std::nullopt;
    int64_t dim = node.args[1].get<int64_t>();
    if (dim < 0) dim += rank;
    if (dim < 1) return std::nullopt;
    out.args[1] = dim + int64_t(source.shape.size()) - rank;
  } else if (!is_one_of(node, kElements) ||
             std::any_of(node.args.begin() + 1, node.args.end(),
                         [](const Json& a) { return !a.is_primitive(); })) {
    return std::nullopt;
  }
  out.id += "_first";
  out.args[0] = {{"ref", source.name}};
  out.outputs[0].name += "~rows";
  out.outputs[0].shape = source.shape;
  return out;
}

}  // namespace

Graph later_views(Graph graph) {
  for (size_t at = 0; at < graph.nodes.size(); ++at) {
    const Node& node = graph.nodes[at];
    const auto viewed = node.args.empty() ? std::nullopt : reference(node.args[0]);
    const Value* source = viewed ? before_merge(graph, *viewed) : nullptr;
    // What an earlier step of this loop has moved is sliced further above.
    const bool moved = source && source->name.ends_with("~rows");
    if (!source || !(moved || is_sliced(graph, source))) continue;
    std::optional<Node> first = applied_before(node, *source);
    if (!first) continue;
    Node view;
    view.id = node.id + "_view";
    view.op = "aten.view.default";
    view.args = {{{"ref", first->outputs[0].name}}, Json(node.outputs[0].shape)};
    view.outputs = node.outputs;
    graph.nodes[at] = std::move(*first);
    graph.nodes.insert(graph.nodes.begin() + ptrdiff_t(at) + 1, std::move(view));
  }
  return graph;
}

}  // namespace cutegen::recipes
