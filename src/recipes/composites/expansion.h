// SPDX-License-Identifier: Apache-2.0
// Expansion: one node that simpler nodes replace, and short ways to write these.
//
// Contract: an Expansion reads the arguments of `node` and appends nodes to the graph. Functions
// return names of values. A rule returns whether it replaced the node; if it did not, it must not
// have written any nodes. A rule that replaces a node writes all of its outputs that are read.
//
// Example: e.write("sum", "aten.sum.default", {tensor_ref(e.input(0)->name)}, {}, e.result().name);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/graph/decompose.h"
#include "recipes/graph/node_writer.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

class Expansion {
 public:
  Expansion(Graph& out, const Graph& graph, const Node& node)
      : node(node), graph(graph), write_(out, graph, node) {}

  // Appends a node. `name`: the output of the replaced node that the new value takes over.
  std::string write(const std::string& word, const std::string& op, std::vector<Json> args,
                    Shape shape, const std::string& name = "") {
    return write_.add(word, op, std::move(args), std::move(shape), name);
  }
  std::string view(const std::string& from, const Shape& shape, const std::string& name = "") {
    return write_.view("view", from, shape, name);
  }
  std::string as(DType dtype, const std::string& value) { return write_.as(dtype, value); }
  // Applies a pointwise operator to values, or to a value and a number. `dtype`: of the result.
  std::string map(const std::string& op, std::vector<Json> args, const Shape& shape,
                  DType dtype = DType::f32) {
    return as(dtype, write(op, "aten." + op, std::move(args), shape));
  }
  // Counts from `start` along one axis, which is as long as axis `axis` of `like`.
  std::string counting(const Value& like, size_t axis, int64_t start = 0);
  // The size of an axis of a value, as an operand of pointwise work.
  static Json size_of(const Value& value, size_t axis);
  // Makes `from`, viewed in the result's shape, the result.
  bool finish(const std::string& from) {
    view(from, result().shape, result().name);
    return true;
  }

  const Value& result(size_t output = 0) const { return node.outputs[output]; }
  // A value of the graph, or one that this expansion has written.
  const Value* find(const std::string& name) const {
    const Value* known = graph.find(name);
    return known ? known : write_.find(name);
  }
  void append(Node node) { write_.append(std::move(node)); }
  // Writes the elements of each row in order, and their positions.
  void sort(const Value& x, int64_t dim, const std::string& values, const std::string& places);
  // The tensor in an argument; null if it is no tensor.
  const Value* input(size_t index) const;
  Json arg(size_t index) const { return index < node.args.size() ? node.args[index] : Json(); }
  std::optional<double> number_at(size_t index) const { return number(arg(index)); }
  // An argument as an axis of a tensor of this rank.
  std::optional<size_t> axis(size_t index, size_t rank) const;
  std::optional<size_t> axis(size_t index, const Value* of) const {
    if (!of) return std::nullopt;
    return axis(index, of->shape.size());
  }
  // The numbers of a list argument; one number stands for `count` of them. Empty: anything else.
  std::vector<int64_t> numbers(size_t index, size_t count) const;
  bool is_read(size_t output) const;

  const Node& node;
  const Graph& graph;

 private:
  NodeWriter write_;
};

using Rule = bool (*)(Expansion&);

// Finds an operator's rule in one file; null if the file has none. `base` is the operator's name.
Rule loss_rule(const std::string& base);
Rule product_rule(const std::string& base);
Rule move_rule(const std::string& base);
Rule pooling_rule(const std::string& base);
Rule scatter_rule(const std::string& base);
Rule search_rule(const std::string& base);
Rule recurrence_rule(const std::string& base);

}  // namespace cutegen::recipes
