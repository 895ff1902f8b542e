// SPDX-License-Identifier: Apache-2.0
// Formats lines that consist of a name and a value, for the text output of runs. Only src/engine
// may use these functions.
//
// Contract: clean() turns untrusted text into one line without terminal escapes.
//
// Example: out += line("stopped", clean(reason, 400));
#pragma once

#include <fmt/format.h>

#include "base/text.h"
#include "base/words.h"

namespace cutegen::engine {

inline std::string clean(const std::string& text, size_t limit = 200) {
  return one_line(text, limit);
}

inline std::string line(const char* name, const std::string& value) {
  return fmt::format("{:<11}{}\n", name, value);
}

inline std::string times(double a, double b) {
  return b > 0 ? fmt::format("{:.2f}x", a / b) : std::string("-");
}

inline std::string counted(int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace cutegen::engine
