// SPDX-License-Identifier: Apache-2.0
// Translates pointwise ATen operators to C++ expressions.
//
// Contract: lower_pointwise() returns an expression that computes one element of the node's result
// in float32 with PyTorch's semantics. In the expression, "{0}", "{1}", ... stand for the tensor
// operands. lower_pointwise() returns nullopt if the operator is not pointwise, and an
// `unsupported` error if it does not cover the node's use of the operator.
//
// Example: aten.leaky_relu.default(x, 0.01) -> {"cutegen::leaky_relu({0}, 0.01f)", {"x"}, false}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

// An operand that is the size of a tensor's axis consists of the prefix kSize, the axis and the
// tensor: "size of 0 x" is dim(x,0). "size of -1 x" is the number of elements of x.
inline const std::string kSize = "size of ";
// Returns the operand for a size of a tensor plus a constant: {"ref": "size of 0-1 x"} means
// dim(x,0) - 1.
Json size_ref(const SizeArgument& size);

struct Pointwise {
  std::string code;                   // "{0} + 2.0f * {1}"
  std::vector<std::string> operands;  // names of values, or sizes (kSize)
  bool boolean = false;               // the result is a boolean
  bool integer = false;               // result and operands are integers or booleans
};

// Strips namespace, overload and in-place suffix: "aten.relu_.default" -> "relu".
std::string base_name(const std::string& op);
// Returns whether the operator writes its first argument, as "aten.relu_.default" does.
bool is_in_place(const std::string& op);
// Returns the argument at position `index` or with the keyword `keyword`, or null if the node has
// no argument at this position or with this keyword.
Json argument(const Node& node, size_t index, const std::string& keyword);
// Reads a number from a node's arguments, including {"float": "inf"}. Returns nullopt for all other
// JSON.
std::optional<double> number(const Json& json);
// Returns `name` for {"ref": name}, which refers to a value, and nullopt for all other JSON.
std::optional<std::string> reference(const Json& json);
// Writes a float literal: 0.01 -> "0.01f".
std::string literal(double value);
// Returns the C++ type of a dtype in kernels ("half_t"), or "" if kernels do not support the dtype.
std::string device_type(DType dtype);
bool is_integer(DType dtype);  // true for integers of every width; false for bool

Result<std::optional<Pointwise>> lower_pointwise(const Node& node);

}  // namespace cutegen::recipes
