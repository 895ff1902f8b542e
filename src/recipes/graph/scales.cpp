// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/scales.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "recipes/graph/pointwise.h"
#include "recipes/graph/products.h"

namespace cutegen::recipes {
namespace {

void count_reads(const Json& json, std::map<std::string, int>& counts) {
  if (auto name = reference(json)) {
    ++counts[*name];
  } else if (json.is_array()) {
    for (const Json& item : json) count_reads(item, counts);
  }
}

Node* node_of(Graph& graph, const std::string& value) {
  for (Node& node : graph.nodes)
    for (const Value& output : node.outputs)
      if (output.name == value) return &node;
  return nullptr;
}

bool changes_layout_only(const Node& node) {
  static const std::set<std::string> kNames{"transpose", "permute", "t", "mT", "numpy_T"};
  return keeps_elements(node) || (node.op.starts_with("aten.") && kNames.count(base_name(node.op)));
}

// Without a very large or small scale, the product might leave the range of float32.
bool is_moderate(double scale) {
  return std::abs(scale) >= 0x1p-16 && std::abs(scale) <= 0x1p16;
}

// Turns the multiplications that scale a factor into copies, and returns the product of the scales.
double take_scale(Graph& graph, const std::map<std::string, int>& reads, std::string factor) {
  double scale = 1;
  for (Node* node = node_of(graph, factor); node; node = node_of(graph, factor)) {
    if (reads.at(factor) != 1 || node->outputs.size() != 1) break;
    if (auto constant = constant_factor(*node)) {
      if (!is_moderate(*constant)) break;
      scale *= *constant;
      node->op = "aten.alias.default";
      node->args = {node->args[0]};
      node->kwargs = Json::object();
    } else if (!changes_layout_only(*node)) {
      break;
    }
    auto from = reference(argument(*node, 0, "self"));
    if (!from) break;
    factor = *from;
  }
  return scale;
}

}  // namespace

std::map<std::string, int> reads_of_values(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) {
    for (const Value& output : node.outputs) counts.emplace(output.name, 0);
    for (const Json& arg : node.args) count_reads(arg, counts);
    for (const auto& [key, arg] : node.kwargs.items()) count_reads(arg, counts);
  }
  for (const std::string& output : graph.outputs) ++counts[output];
  return counts;
}

bool keeps_elements(const Node& node) {
  static const std::set<std::string> kNames{
      "view",       "reshape", "_unsafe_view", "_reshape_alias", "flatten", "unflatten", "expand",
      "contiguous", "clone",   "alias",        "detach",         "squeeze", "unsqueeze"};
  if (!node.op.starts_with("aten.") || node.outputs.size() != 1) return false;
  const std::string base = base_name(node.op);
  // A cast to float keeps every 16-bit value.
  if (base == "_to_copy") return node.outputs.front().dtype == DType::f32;
  return kNames.count(base) > 0;
}

std::optional<double> constant_factor(const Node& node) {
  if (node.outputs.size() != 1 || !node.sizes.empty() || !reference(argument(node, 0, "self")) ||
      !is_floating(node.outputs.front().dtype))
    return std::nullopt;
  const bool divides = node.op == "aten.div.Scalar" || node.op == "aten.div.Tensor";
  if (!divides && node.op != "aten.mul.Scalar" && node.op != "aten.mul.Tensor") return std::nullopt;
  auto constant = number(argument(node, 1, "other"));
  if (!constant || !argument(node, 2, "rounding_mode").is_null()) return std::nullopt;
  return divides ? 1 / *constant : *constant;
}

Graph hoist_scales(Graph graph) {
  const auto reads = reads_of_values(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_product(graph.nodes[i])) continue;
    double scale = 1;
    for (size_t side : {0u, 1u})
      if (auto factor = reference(argument(graph.nodes[i], side, ""));
          factor && reads.at(*factor) == 1)
        scale *= take_scale(graph, reads, *factor);
    if (scale == 1) continue;
    Node scaled;
    scaled.id = graph.nodes[i].id + "_scaled";
    scaled.op = "aten.mul.Scalar";
    scaled.outputs = graph.nodes[i].outputs;
    std::string& name = graph.nodes[i].outputs.front().name;
    name += "__unscaled";
    scaled.args = {{{"ref", name}}, scale};
    graph.nodes.insert(graph.nodes.begin() + long(i) + 1, std::move(scaled));
    ++i;
  }
  return graph;
}

}  // namespace cutegen::recipes
