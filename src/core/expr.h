// SPDX-License-Identifier: Apache-2.0
// Expressions of plan.json: integer arithmetic over symbols, sizes and device facts, checked for
// overflow.
//
// Grammar: numbers, symbols, + - * / % (C semantics on int64), comparison, ?:, parentheses,
// ceil_div min max, dim(t,i) size(t) stride(t,i) attr(name) arg(name) k(name) occupancy(kernel),
// gpu.sms. An axis is a literal; -1 is the last. attr, arg and literals such as 1e-5 may be
// floating point; everything that sizes a launch must be an integer.
// Contract: parse errors name the column. Evaluation reports overflow and division by zero as
// errors. Limits: 4 KB of text, 64 levels of nesting, trees 256 deep.
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

// Looks up names during evaluation. Every call may fail with a user error that names the cause.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual Result<Number> symbol(const std::string& name) const = 0;  // also "gpu.sms"
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
  // Takes a number or a string; errors mention `where`.
  static Result<Expr> from_json(const Json& json, const std::string& where);
  Json json() const;  // number or text, as written; "7" becomes 7

  Result<Number> evaluate(const Scope& scope) const;
  Result<int64_t> integer(const Scope& scope) const;  // error if floating point
  // The names in the expression, each once: symbols as written ("M", "gpu.sms"), others with a
  // prefix: "tensor:x", "attr:eps", "arg:p", "k:cg_smem", "occupancy:gemm".
  std::vector<std::string> mentions() const;
  const std::string& text() const { return text_; }
  const Node& root() const { return *root_; }

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace cutegen
