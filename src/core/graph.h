// SPDX-License-Identifier: Apache-2.0
// Graph: the ATen operators of a task's reference, with shapes and dtypes, at the official shape.
//
// Contract: a value has the name of the node that computes it ("relu", "max_1"; several outputs:
// "max_1.0"). Placeholders carry the task's tensor names. Arguments are JSON: {"ref": VALUE} for a
// tensor, arrays for lists, and plain JSON for constants. Infinities and NaN are {"float": "inf" |
// "-inf" | "nan"}, dtypes are {"dtype": "f32"}. Nodes are in execution order.
//
// Example: Node{"relu", "aten.relu.default", [{"ref":"x"}], {}, [Value{"relu", f32, {16, 64}}]}
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/fields.h"
#include "tensor/dtype.h"

namespace cutegen {

struct Value {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// An argument that is a size of one of the task's tensors, or a little more or less. The graph
// holds its value at the official shape; it differs at other shapes.
struct SizeArgument {
  size_t index = 0;    // in Node::args
  std::string tensor;  // a tensor of the task; empty: the argument depends on sizes in another way
  int dim = -1;        // -1: the number of elements
  int item = 0;        // 0: the argument itself; else the element of a list, from 1
  int64_t plus = 0;    // what the argument adds to the size
  // A bound of a slice that is the same share of the sliced axis at all sizes; no `tensor`.
  bool share = false;
  bool known() const { return !tensor.empty(); }
  std::string text() const;  // "dim(x,0)", "size(x)", "(dim(x,0)-1)"
};

struct Node {
  std::string id;
  std::string op;          // "aten.add.Tensor"
  std::vector<Json> args;  // positional; the schema fills in defaults
  Json kwargs = Json::object();
  std::vector<Value> outputs;
  double flops = 0;  // floating-point operations of this node
  std::vector<SizeArgument> sizes = {};
};

struct Graph {
  std::vector<Value> placeholders;  // inputs, parameters, buffers that the graph reads
  std::vector<Node> nodes;
  std::vector<std::string> outputs;  // value names, in the order of the task's outputs
  // Mutated tensors, and the value that each one holds at the end.
  std::map<std::string, std::string> finals = {};
  std::vector<std::string> warnings;  // what tracing could not capture

  const Node* producer(const std::string& value) const;  // null for placeholders
  const Value* find(const std::string& value) const;
};

void fields(Fields& v, Graph& graph);

}  // namespace cutegen
