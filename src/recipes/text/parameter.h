// SPDX-License-Identifier: Apache-2.0
// A parameter of a recipe, with the values that a search may choose.
//
// Contract: `legal` has the order in which a search should try the values, the best guess first.
//
// Example: RecipeParameter{.name = "threads", .meaning = "threads of a CTA", .legal = {256, 512}}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace cutegen::recipes {

struct RecipeParameter {
  std::string name;            // "vector", "threads", "items"
  std::string meaning;         // a line of help for people and language models
  std::vector<int64_t> legal;  // best guess first
};

// The number of SMs (of an H100) for which the recipes choose the initial values of their
// parameters.
inline constexpr int64_t kSms = 132;

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline int64_t int_param(const Json& params, const char* name) {
  return params.at(name).get<int64_t>();
}

}  // namespace cutegen::recipes
