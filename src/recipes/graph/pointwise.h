// SPDX-License-Identifier: Apache-2.0
// Pointwise ATen operators as C++ expressions on float.
//
// Contract: lower_pointwise returns the expression of one node with "{0}", "{1}", ... for its
// tensor operands, in float32 with PyTorch's semantics. It returns nothing if the operator is not
// pointwise, and an unsupported error if it does not cover this use.
//
// Example: aten.leaky_relu.default(x, 0.01) -> {"cutegen::leaky_relu({0}, 0.01f)", {"x"}, false}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

// An operand that is a size of a tensor, and so differs between shapes, is written as this prefix,
// the axis and the tensor: "size of 0 x". Axis -1 means the number of elements.
inline const std::string kSize = "size of ";
// The operand for a size of a tensor: {"ref": "size of 0-1 x"} is dim(x,0) - 1.
Json size_ref(const SizeArgument& size);

struct Pointwise {
  std::string code;                   // "{0} + 2.0f * {1}"
  std::vector<std::string> operands;  // value names, or sizes
  bool boolean = false;               // the result is a truth value
  bool integer = false;               // the result and the operands are integers or truth values
};

// "aten.relu_.default" -> "relu": the operator without namespace, overload and in-place mark.
std::string base_name(const std::string& op);
// True for "aten.relu_.default": the operator writes its first argument.
bool is_in_place(const std::string& op);
// The argument at `index`, or by keyword; null if absent.
Json argument(const Node& node, size_t index, const std::string& keyword);
// A number of the graph ({"float": "inf"} too); nullopt if it is not a number.
std::optional<double> number(const Json& json);
// The value name of {"ref": name}; nothing otherwise.
std::optional<std::string> reference(const Json& json);
// 0.01 -> "0.01f".
std::string literal(double value);
// "half_t"-style name of a dtype in kernels, empty if kernels do not handle it.
std::string device_type(DType dtype);
bool is_integer(DType dtype);  // true for integers of any width, false for bool

Result<std::optional<Pointwise>> lower_pointwise(const Node& node);

}  // namespace cutegen::recipes
