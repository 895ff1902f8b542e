// SPDX-License-Identifier: Apache-2.0
// Converts an expression of a plan to C++ text for exported programs.
//
// Contract: if the expression has a value, the C++ text evaluates to the same value (int64_t or
// double). The exported program must define the functions that the C++ text may call: over(a, b),
// rest(a, b), ceil_over(a, b), least(a, b) and most(a, b). The functions over, rest and ceil_over
// must return 0 for a division by zero. The caller's function `leaf` returns the C++ text of a
// symbol, a tensor size or a scalar, or returns an error.
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
  std::string name;  // name of the symbol, tensor, scalar, constant or kernel
  int64_t axis = 0;
};
using LeafText = std::function<Result<std::string>(const ExprLeaf&)>;

Result<std::string> cpp_text(const Expr& expression, const LeafText& leaf);
// If the whole expression is a single symbol, size or scalar, sets `out` and returns true.
bool is_leaf(const Expr& expression, ExprLeaf& out);

}  // namespace cutegen
