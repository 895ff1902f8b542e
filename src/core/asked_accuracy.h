// SPDX-License-Identifier: Apache-2.0
// AskedAccuracy: the accuracy that a user asks for on the command line.
//
// Contract: the task's files decide what the user leaves unset. A value that contradicts the side
// file is a user error of the torch worker, which names both places from `sources` ("flag --rtol").
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
  // |y - truth| <= atol + rtol |truth|, in addition to cutegen's tolerance.
  std::optional<double> rtol, atol;
  std::map<std::string, std::string> sources;  // by key: "math_mode", "rtol", "atol"

  bool empty() const { return !math_mode && !rtol && !atol; }
};

// {"rtol": {"value": 0.001, "source": "flag --rtol"}, ...}; an empty object if nothing is set.
void fields(Fields& v, AskedAccuracy& asked);

}  // namespace cutegen
