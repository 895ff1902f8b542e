// SPDX-License-Identifier: Apache-2.0
// Writes an expression of a plan as C++, for generated code.
//
// Contract: the text evaluates to the expression's value (int64_t or double) whenever the
// expression has one. The generated code must define the functions it uses: over(a, b), rest(a, b),
// ceil_over(a, b), least(a, b) and most(a, b). The generated functions must return 0 for a division
// by zero. `leaf` returns the C++ text of a symbol, a size or a scalar, or refuses it.
//
// Example: cpp_text(Expr::parse("ceil_div(n,128)").value(), leaf)  // "ceil_over(s_n,
// INT64_C(128))"
#pragma once

#include <functional>
#include <string>

#include "core/expr.h"

namespace cutegen {

struct ExprLeaf {
  enum class Kind { symbol, dim, stride, size, attribute, argument, constant, occupancy };
  Kind kind = Kind::symbol;
  std::string name;  // the symbol, tensor, scalar, constant or kernel
  int64_t axis = 0;
};
using LeafText = std::function<Result<std::string>(const ExprLeaf&)>;

Result<std::string> cpp_text(const Expr& expression, const LeafText& leaf);
// True if the whole expression is one leaf, which goes to `out`.
bool is_leaf(const Expr& expression, ExprLeaf& out);

}  // namespace cutegen
