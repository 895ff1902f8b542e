// SPDX-License-Identifier: Apache-2.0
// Reads expressions in a launcher (a host function that launches the kernel) without running it.
//
// Contract: host_expression() reads integer arithmetic, comparisons, ?:, min, max, casts, sizeof,
// the sizes, pointers and dtypes of tensors, constants of the file, and functions that only return
// such an expression. For any other expression, host_expression() returns an error that names the
// line. The number of steps and the nesting depth are limited.
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
  // for each define of the plan: name and expression
  std::map<std::string, std::string> defines = {};
  int steps = 0, depth = 0;

  tl::unexpected<Error> error(const Token& at, std::string message) const;
  Error placed(Error error, const Token& at) const;
};

inline constexpr int kMostNesting = 64;

// Increments a nesting depth during the lifetime of this object.
struct HostLevel {
  int& depth;
  explicit HostLevel(int& d) : depth(d) { ++depth; }
  ~HostLevel() { --depth; }
};

struct HostScope {
  std::map<std::string, HostValue> variables;
  std::map<std::string, std::vector<Token>> types;  // local type aliases
};

enum class HostType { integer, boolean, real, pointer, sizes, any, unknown };
HostType host_type(const std::vector<Token>& tokens, TokenRange range, const HostScope& scope);
// Returns the index after the type that begins at `at`, or `at` if no type begins there.
size_t after_type(const std::vector<Token>& tokens, size_t at, size_t end);
// Returns the device type for a host type ("__half" for at::Half), or "" for equal names.
const char* device_type(const std::string& name);
const char* device_type(DType dtype);

// The reader's present position in the tokens of an expression.
struct HostCursor {
  HostContext& context;
  const HostScope& scope;
  const std::vector<Token>& tokens;
  size_t at, end;

  bool more() const { return at < end; }
  const Token& here() const;  // the present token; at the end, the last token
  bool mark(std::string_view text) const { return more() && is_mark(tokens[at], text); }
  const Token* next() const { return at + 1 < end ? &tokens[at + 1] : nullptr; }
  Result<void> expect(std::string_view text);
  void skip_template_arguments();
};

class HostExpression {
 public:
  explicit HostExpression(HostCursor& cursor) : c_(cursor) {}

  Result<HostValue> whole();  // returns an error if tokens remain after the expression
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

// Returns the value of the expression in a range of tokens.
Result<HostValue> host_expression(HostContext& context, const HostScope& scope,
                                  const std::vector<Token>& tokens, TokenRange range);
// Converts a value to a type, for example to three sizes for dim3.
Result<HostValue> host_cast(const HostContext& context, HostType type, HostValue value,
                            const Token& at);

// read_host_name() and read_host_members() read a part of an expression at the cursor and move the
// cursor past this part.
Result<HostValue> read_host_name(HostCursor& cursor);  // reads a variable, call, cast or sizeof
Result<HostValue> read_host_members(HostCursor& cursor, HostValue value);  // .size(0), .x

}  // namespace cutegen::eval
