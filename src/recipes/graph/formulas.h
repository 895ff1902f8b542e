// SPDX-License-Identifier: Apache-2.0
// Formulas: pointwise ATen operators that are one C++ expression on float.
//
// Contract: find_formula returns the expression for an operator's base name, null if there is none.
// Placeholders are the operator's arguments: {argument}, {argument/keyword}, {argument:default},
// {argument/keyword:default}. gives_boolean says whether the result is a truth value.
//
// Example: find_formula("hardtanh") == "cutegen::clamp({0}, {1/min_val:-1}, {2/max_val:1})"
#pragma once

#include <map>
#include <string>

namespace cutegen::recipes {

const char* find_formula(const std::string& base);
// The same for integers; null if the operator has none.
const char* integer_formula(const std::string& base);
bool gives_boolean(const std::string& base);

}  // namespace cutegen::recipes
