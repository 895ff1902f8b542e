// SPDX-License-Identifier: Apache-2.0
// Values of a launcher's host code, as expressions of a plan.
//
// Contract: integers are texts of plan expressions, with a number if they are constant. Floating
// point is only passed on; arithmetic on it is an error, because host code rounds differently. The
// functions below return errors without a place; the caller adds the line.
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

// How tightly the outermost operator of a plan expression binds.
enum class Binding { conditional, equality, relation, sum, product, sign, whole };

struct HostValue {
  enum class Kind { integer, real, tensor, pointer, sizes, dtype, function, unreadable };
  Kind kind = Kind::integer;
  std::string text;  // integer and real
  Binding binding = Binding::whole;
  std::optional<int64_t> number;  // value of a constant integer
  bool boolean = false;           // 0 or 1
  bool fixed = false;             // a const variable
  std::string tensor;             // of a tensor or pointer: the tensor's name
  DType dtype = DType::f32;
  std::vector<HostValue> sizes;     // three, for a dim3
  std::vector<Token> spelled = {};  // function: its name, or the lambda
  Error why = {};                   // unreadable
};

HostValue host_integer(int64_t number);
HostValue host_real(std::string text);
HostValue plan_value(const std::string& plan_expression);  // an integer, or a real attribute
HostValue host_sizes(std::vector<HostValue> sizes);        // fills up to three with 1
HostValue host_unreadable(Error why);

Result<HostValue> host_call(const char* function, const std::vector<HostValue>& arguments);
Result<HostValue> binary(std::string_view op, const HostValue& a, const HostValue& b);
Result<HostValue> negated(const HostValue& a);
Result<HostValue> inverted(const HostValue& a);  // !a
Result<HostValue> chosen(const HostValue& condition, const HostValue& then, const HostValue& other);
bool same_value(const HostValue& a, const HostValue& b);

}  // namespace cutegen::eval
