// SPDX-License-Identifier: Apache-2.0
// Reads expressions of a launcher's host code without running it.
//
// Contract: reads integer arithmetic, comparisons, ?:, min, max, casts, sizeof, sizes of tensors,
// their pointers and dtypes, constants of the file, and functions that only return such an
// expression. Everything else is an error with its line. Steps and nesting are bounded.
//
// Example: CG_TRY(HostValue v, host_expression(context, scope, tokens, {from, to}));
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "eval/source/host_value.h"
#include "eval/source/outline.h"

namespace cutegen::eval {

struct HostContext {
  const SourceOutline& outline;
  std::string file;
  std::function<const TensorInfo*(const std::string&)> tensor;
  std::map<std::string, std::string> defines = {};  // the plan's defines: name -> expression
  int steps = 0, depth = 0;

  tl::unexpected<Error> error(const Token& at, std::string message) const;
  Error placed(Error error, const Token& at) const;
};

inline constexpr int kMostNesting = 64;

// Counts one level of nesting during its lifetime.
struct HostLevel {
  int& depth;
  explicit HostLevel(int& d) : depth(d) { ++depth; }
  ~HostLevel() { --depth; }
};

struct HostScope {
  std::map<std::string, HostValue> variables;
  std::map<std::string, std::vector<Token>> types;  // local aliases
};

enum class HostType { integer, boolean, real, pointer, sizes, any, unknown };
HostType host_type(const std::vector<Token>& tokens, TokenRange range, const HostScope& scope);
// The index after the type that begins here; `at` if none does.
size_t after_type(const std::vector<Token>& tokens, size_t at, size_t end);
// The type of device code: "__half" for at::Half, or "" if C++ and device code spell it alike.
const char* device_type(const std::string& name);
const char* device_type(DType dtype);

// A place in an expression's tokens.
struct HostCursor {
  HostContext& context;
  const HostScope& scope;
  const std::vector<Token>& tokens;
  size_t at, end;

  bool more() const { return at < end; }
  const Token& here() const;  // the last token if the cursor is at the end
  bool mark(std::string_view text) const { return more() && is_mark(tokens[at], text); }
  const Token* next() const { return at + 1 < end ? &tokens[at + 1] : nullptr; }
  Result<void> expect(std::string_view text);
  void skip_template_arguments();
};

class HostExpression {
 public:
  explicit HostExpression(HostCursor& cursor) : c_(cursor) {}

  Result<HostValue> whole();  // the cursor's range must be one expression
  Result<std::vector<HostValue>> arguments();

 private:
  Result<HostValue> conditional();
  Result<HostValue> operation(int least);
  Result<HostValue> unary();
  Result<HostValue> parentheses();
  Result<HostValue> primary();
  Result<void> check_bounds() const;

  HostCursor& c_;
};

// The value of the expression in a range of tokens.
Result<HostValue> host_expression(HostContext& context, const HostScope& scope,
                                  const std::vector<Token>& tokens, TokenRange range);
// Converts a value to a type: an integer for int, three sizes for dim3.
Result<HostValue> host_cast(const HostContext& context, HostType type, HostValue value,
                            const Token& at);

// The next functions read a part of an expression at the cursor and move the cursor behind it.
Result<HostValue> read_host_name(HostCursor& cursor);  // a variable, a call, a cast, sizeof
Result<HostValue> read_host_members(HostCursor& cursor, HostValue value);  // .size(0), .x

}  // namespace cutegen::eval
