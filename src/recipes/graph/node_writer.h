// SPDX-License-Identifier: Apache-2.0
// NodeWriter: appends the nodes that replace one node of a graph.
//
// Contract: each function appends nodes to `out` and returns the name of the value that these nodes
// compute. If the value replaces an output of the old node, pass the output's name as `name`; the
// value gets this name and the output's dtype. Values that replace no output are float32, unless
// as() sets another dtype.
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
  // `graph` contains `node`. `out`, `graph` and `node` must outlive the writer.
  NodeWriter(Graph& out, const Graph& graph, const Node& node)
      : out_(out), graph_(graph), node_(node) {}

  std::string add(const std::string& word, const std::string& op, std::vector<Json> args,
                  Shape shape, const std::string& name = "");
  std::string view(const std::string& word, const std::string& from, const Shape& shape,
                   const std::string& name = "");
  void append(Node node) { out_.nodes.push_back(std::move(node)); }
  // Sets the dtype of `value`, which the last node must compute, and returns its name.
  std::string as(DType dtype, const std::string& value);
  // Adds a keyword argument to the last node.
  void set_keyword(const std::string& name, const Json& value) {
    out_.nodes.back().kwargs[name] = value;
  }
  // Writes (x - mean) / sqrt(mean((x - mean)^2) + eps), in which the means are over `axes`.
  std::string standardized(const std::string& x, const std::vector<int>& axes, double eps);
  // Writes the node's first output: x * weight + bias. `weight` and `bias` are vectors along `axis`
  // of x, and either of them may be null.
  void scaled(std::string x, const Json& weight, const Json& bias, size_t axis);
  // Writes the node's first output: tril(x, by) or, if `upper`, triu(x, by), as a where() over a
  // comparison of row and column numbers.
  void triangle(const Value& x, bool upper, int64_t by);
  // Finds a value of the graph, or a value that this NodeWriter added.
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
