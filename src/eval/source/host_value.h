// SPDX-License-Identifier: Apache-2.0
// Values in a launcher (a host function that launches the kernel), as expressions of plan.json.
//
// Contract: an integer has the text of a plan expression and, if the integer is constant, also a
// number. A floating-point value may only be a kernel argument. Arithmetic with a floating-point
// value is an error, because host code rounds differently from plan expressions. The functions of
// this file return errors without a place, and the caller adds the line.
//
// Example: CG_TRY(HostValue grid, binary("/", tokens, host_integer(256)));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/task.h"
#include "eval/source/source_scan.h"

namespace cutegen::eval {

// The precedence of the outermost operator of a plan expression, from low to high.
enum class Binding { conditional, equality, relation, sum, product, sign, whole };

struct HostValue {
  enum class Kind { integer, real, tensor, pointer, sizes, dtype, function, unreadable };
  Kind kind = Kind::integer;
  std::string text;  // for an integer or a floating-point value: the plan expression
  Binding binding = Binding::whole;
  std::optional<int64_t> number;  // the value of a constant integer
  bool boolean = false;           // whether the integer is a boolean (0 or 1)
  bool fixed = false;             // whether the value belongs to a const variable
  std::string tensor;             // for a tensor or a pointer: the tensor's name
  DType dtype = DType::f32;
  std::vector<HostValue> sizes;     // the three sizes of a dim3
  std::vector<Token> spelled = {};  // for a function: the tokens of its name, or of the lambda
  Error why = {};                   // for an unreadable value: the reason
};

HostValue host_integer(int64_t number);
HostValue host_real(std::string text);
// Returns a plan expression as an integer. For a floating-point attribute, the caller changes the
// kind.
HostValue plan_value(const std::string& plan_expression);
HostValue host_sizes(std::vector<HostValue> sizes);  // missing sizes become 1
HostValue host_unreadable(Error why);

Result<HostValue> host_call(const char* function, const std::vector<HostValue>& arguments);
Result<HostValue> binary(std::string_view op, const HostValue& a, const HostValue& b);
Result<HostValue> negated(const HostValue& a);
Result<HostValue> inverted(const HostValue& a);  // !a
Result<HostValue> chosen(const HostValue& condition, const HostValue& then, const HostValue& other);
bool same_value(const HostValue& a, const HostValue& b);

}  // namespace cutegen::eval
