// SPDX-License-Identifier: Apache-2.0
// Expansion: replaces one node of a graph by simpler nodes. The class has short functions that
// append nodes.
//
// Contract: an Expansion reads the arguments of `node` and appends nodes to the graph. A function
// that appends a node returns the name of its value. A Rule returns true if it replaced the node,
// and must then have written every output that other nodes read. A Rule that returns false must not
// have appended any nodes.
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

  // Appends a node. If its value replaces an output of `node`, `name` is the name of this output.
  std::string write(const std::string& word, const std::string& op, std::vector<Json> args,
                    Shape shape, const std::string& name = "") {
    return write_.add(word, op, std::move(args), std::move(shape), name);
  }
  std::string view(const std::string& from, const Shape& shape, const std::string& name = "") {
    return write_.view("view", from, shape, name);
  }
  std::string as(DType dtype, const std::string& value) { return write_.as(dtype, value); }
  // Applies a pointwise operator to values, or to a value and a number, with a result of type
  // `dtype`.
  std::string map(const std::string& op, std::vector<Json> args, const Shape& shape,
                  DType dtype = DType::f32) {
    return as(dtype, write(op, "aten." + op, std::move(args), shape));
  }
  // Appends a tensor with the values start, start + 1, ... The tensor has one axis, which is as
  // long as axis `axis` of `like`.
  std::string counting(const Value& like, size_t axis, int64_t start = 0);
  // Returns the size of an axis of a value, as an operand for a pointwise operator.
  static Json size_of(const Value& value, size_t axis);
  // Replaces the first output of `node` by a view of `from` in the output's shape.
  bool finish(const std::string& from) {
    view(from, result().shape, result().name);
    return true;
  }

  const Value& result(size_t output = 0) const { return node.outputs[output]; }
  // Finds a value of the graph, or a value that this expansion has written.
  const Value* find(const std::string& name) const {
    const Value* known = graph.find(name);
    return known ? known : write_.find(name);
  }
  void append(Node node) { write_.append(std::move(node)); }
  // Sorts `x` along axis `dim` in ascending order. Writes the sorted elements as the value
  // `values`, and their positions in `x` as the value `places`.
  void sort(const Value& x, int64_t dim, const std::string& values, const std::string& places);
  // Returns argument `index` if this argument is a tensor, and null if not.
  const Value* input(size_t index) const;
  Json arg(size_t index) const { return index < node.args.size() ? node.args[index] : Json(); }
  std::optional<double> number_at(size_t index) const { return number(arg(index)); }
  // Reads argument `index` as an axis of a tensor with `rank` axes. Negative axes count from the
  // end.
  std::optional<size_t> axis(size_t index, size_t rank) const;
  std::optional<size_t> axis(size_t index, const Value* of) const {
    if (!of) return std::nullopt;
    return axis(index, of->shape.size());
  }
  // Returns argument `index` as a list of `count` integers. If the argument is a single integer,
  // the list repeats it. Returns an empty list if the argument is neither an integer nor a list of
  // integers.
  std::vector<int64_t> numbers(size_t index, size_t count) const;
  bool is_read(size_t output) const;

  const Node& node;
  const Graph& graph;

 private:
  NodeWriter write_;
};

using Rule = bool (*)(Expansion&);

// Each function NAME_rule() has its own .cpp file. It returns the file's Rule for the operator with
// the name `base`, or null if the file has no Rule for this operator.
Rule loss_rule(const std::string& base);
Rule product_rule(const std::string& base);
Rule move_rule(const std::string& base);
Rule part_rule(const std::string& base);
Rule pooling_rule(const std::string& base);
Rule scatter_rule(const std::string& base);
Rule search_rule(const std::string& base);
Rule recurrence_rule(const std::string& base);

}  // namespace cutegen::recipes
