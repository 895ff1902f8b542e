// SPDX-License-Identifier: Apache-2.0
// Formulas: the pointwise ATen operators that are a single C++ expression of floats.
//
// Contract: find_formula() takes an operator's base name ("hardtanh") and returns the operator's
// expression, or null if the operator has none. A placeholder in the expression stands for an
// argument of the operator: {position}, {position/keyword}, {position:default} or
// {position/keyword:default}. gives_boolean() returns whether the operator's result is a boolean.
//
// Example: find_formula("hardtanh") == "cutegen::clamp({0}, {1/min_val:-1}, {2/max_val:1})"
#pragma once

#include <map>
#include <string>

namespace cutegen::recipes {

const char* find_formula(const std::string& base);
// Does the same as find_formula(), but returns an expression of integers.
const char* integer_formula(const std::string& base);
bool gives_boolean(const std::string& base);

}  // namespace cutegen::recipes
