// SPDX-License-Identifier: Apache-2.0
#include "core/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/expr_node.h"

namespace cutegen {
namespace {

using ExprNode = Expr::Node;
using Kind = ExprNode::Kind;

class Evaluator {
 public:
  Evaluator(const Scope& scope, const std::string& text) : scope_(scope), text_(text) {}

  Result<Number> run(const ExprNode& n) const {
    switch (n.kind) {
      case Kind::integer:
        return Number(n.value);
      case Kind::real:
        return Number(n.real);
      case Kind::negate:
        return negate(n);
      case Kind::binary:
        return binary(n);
      case Kind::conditional:
        return conditional(n);
      case Kind::ceil_div:
      case Kind::min:
      case Kind::max:
        return of_two(n);
      default:
        return lookup(n);
    }
  }

 private:
  tl::unexpected<Error> error(const ExprNode& n, const std::string& message) const {
    return user_error(fmt::format("{} in '{}' at column {}", message, text_, n.offset + 1));
  }

  Result<Number> lookup(const ExprNode& n) const {
    auto widen = [](Result<int64_t> r) -> Result<Number> {
      if (!r) return fail(std::move(r).error());
      return Number(*r);
    };
    switch (n.kind) {
      case Kind::symbol:
        return scope_.symbol(n.name);
      case Kind::dim:
        return widen(scope_.dim(n.name, n.value));
      case Kind::stride:
        return widen(scope_.stride(n.name, n.value));
      case Kind::size:
        return widen(scope_.size(n.name));
      case Kind::attribute:
        return scope_.attribute(n.name);
      case Kind::argument:
        return scope_.argument(n.name);
      case Kind::constant:
        return widen(scope_.module_constant(n.name));
      case Kind::occupancy:
        return widen(scope_.occupancy(n.name));
      default:
        break;
    }
    CG_ASSERT(false);
    return Number(int64_t{0});
  }

  Result<Number> negate(const ExprNode& n) const {
    CG_TRY(Number v, run(*n.children[0]));
    if (const double* d = std::get_if<double>(&v)) return Number(-*d);
    int64_t out = 0;
    if (__builtin_sub_overflow(int64_t{0}, std::get<int64_t>(v), &out))
      return error(n, "integer overflow");
    return Number(out);
  }

  Result<Number> conditional(const ExprNode& n) const {
    CG_TRY(Number condition, run(*n.children[0]));
    bool holds = std::visit([](auto v) { return v != 0; }, condition);
    return run(*n.children[holds ? 1 : 2]);
  }

  Result<Number> binary(const ExprNode& n) const {
    CG_TRY(Number a, run(*n.children[0]));
    CG_TRY(Number b, run(*n.children[1]));
    bool real = std::holds_alternative<double>(a) || std::holds_alternative<double>(b);
    return real ? on_reals(n, as_real(a), as_real(b))
                : on_integers(n, std::get<int64_t>(a), std::get<int64_t>(b));
  }

  template <class T>
  static std::optional<bool> compare(const std::string& op, T a, T b) {
    if (op == "<") return a < b;
    if (op == "<=") return a <= b;
    if (op == ">") return a > b;
    if (op == ">=") return a >= b;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    return std::nullopt;
  }

  Result<Number> on_integers(const ExprNode& n, int64_t a, int64_t b) const {
    if (auto c = compare(n.name, a, b)) return Number(int64_t{*c});
    int64_t out = 0;
    bool overflow = false;
    switch (n.name[0]) {
      case '+':
        overflow = __builtin_add_overflow(a, b, &out);
        break;
      case '-':
        overflow = __builtin_sub_overflow(a, b, &out);
        break;
      case '*':
        overflow = __builtin_mul_overflow(a, b, &out);
        break;
      default:
        if (b == 0) return error(n, "division by zero");
        overflow = a == std::numeric_limits<int64_t>::min() && b == -1;
        if (!overflow) out = n.name[0] == '/' ? a / b : a % b;
    }
    if (overflow) return error(n, "integer overflow");
    return Number(out);
  }

  Result<Number> on_reals(const ExprNode& n, double a, double b) const {
    if (auto c = compare(n.name, a, b)) return Number(int64_t{*c});
    double out = 0;
    switch (n.name[0]) {
      case '+':
        out = a + b;
        break;
      case '-':
        out = a - b;
        break;
      case '*':
        out = a * b;
        break;
      case '/':
        if (b == 0) return error(n, "division by zero");
        out = a / b;
        break;
      default:
        return error(n, "'%' needs integers");
    }
    if (!std::isfinite(out) && std::isfinite(a) && std::isfinite(b))
      return error(n, "floating-point overflow");
    return Number(out);
  }

  Result<Number> of_two(const ExprNode& n) const {
    CG_TRY(Number a, run(*n.children[0]));
    CG_TRY(Number b, run(*n.children[1]));
    bool real = std::holds_alternative<double>(a) || std::holds_alternative<double>(b);
    if (n.kind == Kind::ceil_div) {
      if (real) return error(n, "ceil_div needs integers");
      return ceil_div(n, std::get<int64_t>(a), std::get<int64_t>(b));
    }
    bool first = real ? as_real(a) <= as_real(b) : std::get<int64_t>(a) <= std::get<int64_t>(b);
    if (n.kind == Kind::max) first = !first;
    return first ? a : b;
  }

  Result<Number> ceil_div(const ExprNode& n, int64_t a, int64_t b) const {
    if (b <= 0) return error(n, fmt::format("ceil_div by {}: the divisor must be positive", b));
    return Number(a / b + (a % b > 0 ? 1 : 0));
  }

  static double as_real(const Number& v) {
    return std::visit([](auto x) { return double(x); }, v);
  }

  const Scope& scope_;
  const std::string& text_;
};

std::string mention(const ExprNode& n) {
  switch (n.kind) {
    case Kind::symbol:
      return n.name;
    case Kind::dim:
    case Kind::stride:
    case Kind::size:
      return "tensor:" + n.name;
    case Kind::attribute:
      return "attr:" + n.name;
    case Kind::argument:
      return "arg:" + n.name;
    case Kind::constant:
      return "k:" + n.name;
    case Kind::occupancy:
      return "occupancy:" + n.name;
    default:
      return {};
  }
}

}  // namespace

Expr::Expr(int64_t constant)
    : text_(std::to_string(constant)),
      root_(std::make_shared<ExprNode>(ExprNode{.value = constant})) {}

Result<Expr> Expr::parse(const std::string& text) {
  CG_TRY(auto root, parse_expression(text));
  Expr out;
  out.text_ = text;
  out.root_ = std::move(root);
  return out;
}

Result<Expr> Expr::from_json(const Json& json, const std::string& where) {
  bool fits = !json.is_number_unsigned() || json.get<uint64_t>() <= uint64_t{INT64_MAX};
  if (json.is_number_integer() && fits) return Expr(json.get<int64_t>());
  if (json.is_number()) {
    Expr out;
    out.text_ = Json(json.get<double>()).dump();
    out.root_ =
        std::make_shared<ExprNode>(ExprNode{.kind = Kind::real, .real = json.get<double>()});
    return out;
  }
  if (!json.is_string())
    return user_error(std::string("expected a number or an expression, found ") + json.type_name(),
                      where);
  auto parsed = parse(json.get<std::string>());
  if (!parsed) {
    Error error = std::move(parsed).error();
    error.where = where;
    return fail(std::move(error));
  }
  return parsed;
}

Json Expr::json() const {
  // An integer node is negative only if from_json() read it from a JSON number.
  bool negative = root_->kind == Kind::integer && root_->value < 0;
  if (root_->kind == Kind::integer && (negative || text_ == std::to_string(root_->value)))
    return root_->value;
  if (root_->kind == Kind::real && text_ == Json(root_->real).dump()) return root_->real;
  return text_;
}

Result<Number> Expr::evaluate(const Scope& scope) const {
  return Evaluator(scope, text_).run(*root_);
}

Result<Number> evaluate_node(const Expr::Node& node, const Expr& whole, const Scope& scope) {
  return Evaluator(scope, whole.text()).run(node);
}

Result<int64_t> Expr::integer(const Scope& scope) const {
  CG_TRY(Number value, evaluate(scope));
  if (const int64_t* i = std::get_if<int64_t>(&value)) return *i;
  return user_error(
      fmt::format("'{}' is {}, but an integer is needed", text_, std::get<double>(value)));
}

std::vector<std::string> Expr::mentions() const {
  std::vector<std::string> out;
  visit(*root_, [&](const ExprNode& n) {
    std::string name = mention(n);
    if (!name.empty() && std::find(out.begin(), out.end(), name) == out.end())
      out.push_back(std::move(name));
  });
  return out;
}

}  // namespace cutegen
