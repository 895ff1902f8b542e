// SPDX-License-Identifier: Apache-2.0
// The outline of a CUDA source: its functions, constants and macros at namespace scope.
//
// Contract: never fails; what it cannot read is missing. Operators of several characters are one
// token, except those that begin with '>', because '>' also closes template arguments. A name that
// the source defines twice is marked, because preprocessor conditions are not evaluated.
//
// Example: const SourceOutline o = outline_of(text); o.function("launch")
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/source/source_scan.h"

namespace cutegen::eval {

using TokenRange = std::pair<size_t, size_t>;  // [first, second) of a list of tokens

struct SourceFunction {
  std::string name, scope;     // scope: its namespaces, such as "::ours"
  size_t begin = 0, end = 0;   // its tokens
  size_t open = 0, close = 0;  // the parentheses of its parameters
  size_t body = 0;             // the opening brace; 0 if it is only declared
  bool templated = false, device = false, global = false;
};

struct SourceMacro {
  bool is_function = false, defined_twice = false;
  std::vector<std::string> parameters;
  std::vector<Token> body;
};

struct SourceConstant {
  TokenRange value;
  bool defined_twice = false;
};

struct SourceOutline {
  std::vector<Token> tokens;
  std::vector<SourceFunction> functions;
  std::vector<TokenRange> others;  // other declarations at namespace scope
  std::map<std::string, SourceMacro> macros;
  std::map<std::string, SourceConstant> constants;

  // The functions of this name that have a body.
  std::vector<const SourceFunction*> defined(const std::string& name) const;
};

SourceOutline outline_of(std::string_view source);

bool is_mark(const Token& token, std::string_view text);  // punctuation
// The index of the bracket that closes tokens[open], at most `end`.
size_t closing(const std::vector<Token>& tokens, size_t open, size_t end);
// The parts of a range between commas outside brackets. An empty range has no parts.
std::vector<TokenRange> comma_parts(const std::vector<Token>& tokens, TokenRange range);
// The tokens of a range with the file's macros replaced. Each has the place where the macro is
// used. Keeps macros whose names contain CHECK or DISPATCH, and those that it cannot expand.
// nullopt if the result is too long.
std::optional<std::vector<Token>> expand_macros(const SourceOutline& outline, TokenRange range);

}  // namespace cutegen::eval
