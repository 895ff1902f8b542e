// SPDX-License-Identifier: Apache-2.0
// Writes the nodes that replace one node of a graph.
//
// Contract: each function appends nodes to `out` and returns the name of their value. `name` gives
// a value the name of one of the replaced node's outputs, and that output's dtype; all other values
// are float32 unless as() says otherwise.
//
// Example: NodeWriter write(out, graph, node); write.add("sum", "aten.sum.default", {x}, {});
#pragma once

#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

Json tensor_ref(const std::string& name);

class NodeWriter {
 public:
  // `graph` contains the node. All three must outlive the writer.
  NodeWriter(Graph& out, const Graph& graph, const Node& node)
      : out_(out), graph_(graph), node_(node) {}

  std::string add(const std::string& word, const std::string& op, std::vector<Json> args,
                  Shape shape, const std::string& name = "");
  std::string view(const std::string& word, const std::string& from, const Shape& shape,
                   const std::string& name = "");
  void append(Node node) { out_.nodes.push_back(std::move(node)); }
  // Sets the dtype of the last value.
  std::string as(DType dtype, const std::string& value);
  // (x - mean) / sqrt(mean((x - mean)^2) + eps) over `axes`.
  std::string standardized(const std::string& x, const std::vector<int>& axes, double eps);
  // Writes the node's first output: x * weight + bias along `axis`. Both may be missing.
  void scaled(std::string x, const Json& weight, const Json& bias, size_t axis);
  // Writes the node's first output: tril(x, by) or triu(x, by), which positions decide.
  void triangle(const Value& x, bool upper, int64_t by);
  // A value of the graph, or one that this writer added.
  const Value* find(const std::string& name) const;

 private:
  std::string mean_of(const std::string& word, const std::string& x, const std::vector<int>& axes,
                      const Shape& kept);

  Graph& out_;
  const Graph& graph_;
  const Node& node_;
  int count_ = 0;
};

}  // namespace cutegen::recipes
