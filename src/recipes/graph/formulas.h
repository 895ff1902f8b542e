// SPDX-License-Identifier: Apache-2.0
// Formulas: the pointwise ATen operators that are a single C++ expression of floats.
//
// Contract: find_formula() takes an operator's base name ("hardtanh") and returns the expression,
// or null if there is none. A placeholder in the expression stands for an argument of the operator,
// by position, by position or keyword, and with or without a default value: {argument},
// {argument/keyword}, {argument:default}, {argument/keyword:default}. gives_boolean() returns
// whether the operator's result is a boolean.
//
// Example: find_formula("hardtanh") == "cutegen::clamp({0}, {1/min_val:-1}, {2/max_val:1})"
#pragma once

#include <map>
#include <string>

namespace cutegen::recipes {

const char* find_formula(const std::string& base);
// Like find_formula(), but returns an expression of integers.
const char* integer_formula(const std::string& base);
bool gives_boolean(const std::string& base);

}  // namespace cutegen::recipes
