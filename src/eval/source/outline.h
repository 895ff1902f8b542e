// SPDX-License-Identifier: Apache-2.0
// The outline of a CUDA source: functions, constants and macros at namespace scope.
//
// Contract: outline_of() never fails, but omits declarations that it cannot read. It does not
// evaluate preprocessor conditions, so it may find two definitions of a name, one in #if and one in
// #else. In this case, outline_of() sets `defined_twice`. An operator of several characters is one
// token, unless it begins with '>', because '>' also closes template arguments.
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

using TokenRange = std::pair<size_t, size_t>;  // token indices from `first` to `second` - 1

struct SourceFunction {
  std::string name, scope;     // scope: the enclosing namespaces, such as "::ours"
  size_t begin = 0, end = 0;   // token indices [begin, end) of the function
  size_t open = 0, close = 0;  // token indices of the parentheses around the parameters
  size_t body = 0;             // token index of the opening brace; 0 without a body
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

  // Returns the functions of this name that have a body.
  std::vector<const SourceFunction*> defined(const std::string& name) const;
};

SourceOutline outline_of(std::string_view source);

bool is_mark(const Token& token, std::string_view text);  // true for punctuation with this text
// Returns the index of the bracket that closes tokens[open], or `end`.
size_t closing(const std::vector<Token>& tokens, size_t open, size_t end);
// Splits a range of tokens at commas outside brackets. Returns no parts for an empty range.
std::vector<TokenRange> comma_parts(const std::vector<Token>& tokens, TokenRange range);
// Returns the tokens of a range with the file's macros expanded. A token from a macro has the place
// of the macro's use. Macros with CHECK or DISPATCH in their names, and macros that cannot be
// expanded, stay unchanged. Returns nullopt if the result is too long.
std::optional<std::vector<Token>> expand_macros(const SourceOutline& outline, TokenRange range);

}  // namespace cutegen::eval
