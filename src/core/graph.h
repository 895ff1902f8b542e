// SPDX-License-Identifier: Apache-2.0
// Graph: the ATen operators of a task's reference, with shapes and dtypes, at the official shape
// (the sizes in the task file).
//
// Contract: a value is named after the node that computes it: "relu", "max_1", or "max_1.0" if the
// node has several outputs. A placeholder has the name of its tensor in the task. An argument is
// JSON: {"ref": VALUE} is a tensor, an array is a list, {"dtype": "f32"} is a dtype, and {"float":
// "inf" | "-inf" | "nan"} is a special number. Numbers, texts and booleans are plain JSON. Nodes
// are in execution order.
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

// An argument of a node that depends on the size of a tensor, for example dim(x,0) - 1. Node::args
// contains the argument's value at the official shape only.
struct SizeArgument {
  size_t index = 0;    // in Node::args
  std::string tensor;  // the task's tensor; empty if the argument has another form
  int dim = -1;        // the tensor's dimension; -1: the tensor's number of elements
  int item = 0;        // if the argument is a list: the position in the list, from 1; else 0
  int64_t plus = 0;    // value of the argument minus the tensor's size
  // True if the argument is the start or the end of a slice and lies at the same share of the
  // sliced axis at all sizes (for example, in the middle of the axis). Also true if the argument is
  // the length of the parts that chunk() returns: the axis' size divided by the number of parts,
  // rounded up.
  bool share = false;
  // True if the argument is the length of the parts that split() returns, and the module gives this
  // length as a number. The length then stays the same if the size of the divided axis changes.
  bool fixed = false;
  bool known() const { return !tensor.empty(); }
  std::string text() const;  // "dim(x,0)", "size(x)", "(dim(x,0)-1)"
};

struct Node {
  std::string id;
  std::string op;          // "aten.add.Tensor"
  std::vector<Json> args;  // positional arguments; the ATen schema defines the defaults
  Json kwargs = Json::object();
  std::vector<Value> outputs;
  double flops = 0;  // floating-point operations of this node
  std::vector<SizeArgument> sizes = {};
};

struct Graph {
  std::vector<Value> placeholders;  // the inputs, parameters and buffers that the graph reads
  std::vector<Node> nodes;
  std::vector<std::string> outputs;  // value names, in the order of the task's outputs
  // For each tensor that the reference mutates: the name of its final value.
  std::map<std::string, std::string> finals = {};
  std::vector<std::string> warnings;  // parts of the module that the graph does not show

  const Node* producer(const std::string& value) const;  // null for placeholders
  const Value* find(const std::string& value) const;
};

void fields(Fields& v, Graph& graph);

}  // namespace cutegen
