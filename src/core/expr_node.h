// SPDX-License-Identifier: Apache-2.0
// Expr::Node: the parsed form of an expression, for the parser, the evaluator and plan checks.
//
// Contract: nodes are immutable after parsing. Recursion over a tree of nodes is safe, because the
// tree's depth is at most kMaxTreeDepth. `offset` is the byte offset of the node in the
// expression's text. Only src/core includes this file.
//
// Example: visit(*expr.root(), [](const Expr::Node& n) { ... });
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/expr.h"

namespace cutegen {

struct Expr::Node {
  enum class Kind {
    integer,      // value
    real,         // real
    symbol,       // name
    negate,       // children[0]
    binary,       // name: the operator; children: its two operands
    conditional,  // condition, then, else
    ceil_div,
    min,
    max,
    dim,     // name: the tensor; value: the axis
    stride,  // as dim
    size,    // name: the tensor
    attribute,
    argument,
    constant,   // k(name)
    occupancy,  // name: the kernel
  };
  Kind kind = Kind::integer;
  int64_t value = 0;
  double real = 0;
  std::string name;
  std::vector<std::shared_ptr<const Node>> children;
  size_t offset = 0;
  int depth = 1;
};

namespace expr_limits {
constexpr size_t kMaxText = 4096;
constexpr int kMaxNesting = 64;     // limit of nested parentheses, calls, unary minus and "?:"
constexpr int kMaxTreeDepth = 256;  // each operator of 1+1+1+... adds a level
}  // namespace expr_limits

// Calls `f` for every node of the tree. A parent comes before its children.
inline void visit(const Expr::Node& node, const std::function<void(const Expr::Node&)>& f) {
  f(node);
  for (const auto& child : node.children) visit(*child, f);
}

// Returns the value of `node`, which is a part of the expression `whole`.
Result<Number> evaluate_node(const Expr::Node& node, const Expr& whole, const Scope& scope);

Result<std::shared_ptr<const Expr::Node>> parse_expression(const std::string& text);

}  // namespace cutegen
