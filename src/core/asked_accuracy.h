// SPDX-License-Identifier: Apache-2.0
// AskedAccuracy: the math mode and the error limits that a user requests on the command line.
//
// Contract: if the user leaves a field unset, the task's files give its value. If a value
// contradicts the task's side file (NAME.toml), the torch worker reports a user error that names
// the side file and the value's source ("flag --rtol").
//
// Example: AskedAccuracy a; a.math_mode = MathMode::bf16; a.sources["math_mode"] = "my script";
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/task.h"

namespace cutegen {

struct AskedAccuracy {
  std::optional<MathMode> math_mode;
  // In addition to cutegen's own tolerance, each output element y must meet
  // |y - truth| <= atol + rtol * |truth|, where truth is the float64 result.
  std::optional<double> rtol, atol;
  std::map<std::string, std::string> sources;  // source of each value, by field name

  bool empty() const { return !math_mode && !rtol && !atol; }
};

// JSON form: {"rtol": {"value": 0.001, "source": "flag --rtol"}, ...}. The JSON omits fields that
// are not set.
void fields(Fields& v, AskedAccuracy& asked);

}  // namespace cutegen
