// SPDX-License-Identifier: Apache-2.0
// Expressions of plan.json: integer arithmetic over symbols, tensor sizes and properties of the
// device. Evaluation checks for overflow.
//
// Grammar: numbers, symbols, + - * / % (C semantics on int64), comparison, ?:, parentheses,
// ceil_div min max, dim(t,i) size(t) stride(t,i) attr(name) arg(name) k(name) occupancy(kernel),
// gpu.sms. In this grammar, attr(name) is a scalar attribute of the module, arg(name) a scalar
// input of the module, and k(name) an integer constant that the device source exports. An axis is
// an integer literal; -1 is the last axis. The values of attr, arg and literals such as 1e-5 may be
// floating point, but grid, block, cluster and buffer sizes must be integers.
//
// Contract: parse errors name the column. Overflow and division by zero are errors. Limits: 4 KB of
// text, 64 nested parentheses or calls, syntax trees of depth 256.
//
// Example: CG_TRY(Expr e, Expr::parse("ceil_div(M,128)")); CG_TRY(Number n, e.evaluate(scope));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace cutegen {

using Number = std::variant<int64_t, double>;

// Supplies the values of names during evaluation. For a name without a value, each function returns
// a user error that gives the reason.
class Scope {
 public:
  virtual ~Scope() = default;
  // a symbol of the plan, or "gpu.sms"
  virtual Result<Number> symbol(const std::string& name) const = 0;
  virtual Result<int64_t> dim(const std::string& tensor, int64_t axis) const = 0;
  virtual Result<int64_t> size(const std::string& tensor) const = 0;
  virtual Result<int64_t> stride(const std::string& tensor, int64_t axis) const = 0;
  virtual Result<Number> attribute(const std::string& name) const = 0;
  virtual Result<Number> argument(const std::string& name) const = 0;
  virtual Result<int64_t> module_constant(const std::string& name) const = 0;  // k(name)
  virtual Result<int64_t> occupancy(const std::string& kernel) const = 0;
};

class Expr {
 public:
  struct Node;
  Expr() : Expr(0) {}
  explicit Expr(int64_t constant);
  static Result<Expr> parse(const std::string& text);
  // Converts a JSON number or string to an expression. Errors have the place `where`.
  static Result<Expr> from_json(const Json& json, const std::string& where);
  Json json() const;  // the expression as a JSON number or string

  Result<Number> evaluate(const Scope& scope) const;
  Result<int64_t> integer(const Scope& scope) const;  // error if the value is floating point
  // Returns every name in the expression once: a symbol as written ("M", "gpu.sms"), any other name
  // with a prefix ("tensor:x", "attr:eps", "arg:p", "k:cg_smem", "occupancy:gemm").
  std::vector<std::string> mentions() const;
  const std::string& text() const { return text_; }
  const Node& root() const { return *root_; }

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace cutegen
