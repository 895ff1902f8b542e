// SPDX-License-Identifier: Apache-2.0
#include "eval/source/host_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

constexpr size_t kMostText = 4096;  // of a plan expression
constexpr int kMostShift = 62;

const std::map<std::string_view, Binding>& plan_operators() {
  static const std::map<std::string_view, Binding> table{
      {"==", Binding::equality}, {"!=", Binding::equality}, {"<", Binding::relation},
      {"<=", Binding::relation}, {">", Binding::relation},  {">=", Binding::relation},
      {"+", Binding::sum},       {"-", Binding::sum},       {"*", Binding::product},
      {"/", Binding::product},   {"%", Binding::product}};
  return table;
}

std::string wrapped(const HostValue& value, Binding least) {
  return value.binding < least ? "(" + value.text + ")" : value.text;
}

Result<HostValue> checked(HostValue value) {
  if (value.text.size() > kMostText)
    return user_error("the expression is longer than a plan accepts");
  return value;
}

// The value of constants; nullopt for overflow, division by zero and other operators.
std::optional<int64_t> folded(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  if (op == "+") return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "-") return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "*") return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (b == 0 || b == -1) return std::nullopt;
  if (op == "/") return a / b;
  if (op == "%") return a % b;
  return std::nullopt;
}

// A plan has no && and ||, but it has ?:.
Result<HostValue> logical(bool both, const HostValue& a, const HostValue& b) {
  if (a.number) {
    if (both != (*a.number != 0)) return host_integer(both ? 0 : 1);
    return b.boolean ? Result<HostValue>(b) : binary("!=", b, host_integer(0));
  }
  CG_TRY(HostValue second, b.boolean ? Result<HostValue>(b) : binary("!=", b, host_integer(0)));
  HostValue out = both ? HostValue{.text = fmt::format("{} ? {} : 0", wrapped(a, Binding::equality),
                                                       wrapped(second, Binding::equality))}
                       : HostValue{.text = fmt::format("{} ? 1 : {}", wrapped(a, Binding::equality),
                                                       wrapped(second, Binding::equality))};
  out.binding = Binding::conditional;
  out.boolean = true;
  return checked(std::move(out));
}

// The remainder that is never negative, which is a & (power - 1).
Result<HostValue> masked(const HostValue& a, int64_t power) {
  CG_TRY(HostValue rest, binary("%", a, host_integer(power)));
  CG_TRY(HostValue sum, binary("+", rest, host_integer(power)));
  return binary("%", sum, host_integer(power));
}

Result<HostValue> bits(std::string_view op, const HostValue& a, const HostValue& b) {
  const bool shifts = op == "<<" || op == ">>";
  if (shifts && b.number && *b.number >= 0 && *b.number <= kMostShift) {
    const int64_t power = int64_t{1} << *b.number;
    if (op == "<<") return binary("*", a, host_integer(power));
    CG_TRY(HostValue low, masked(a, power));
    CG_TRY(HostValue high, binary("-", a, low));
    return binary("/", high, host_integer(power));
  }
  const bool is_mask = op == "&" && b.number && *b.number > 0 && *b.number < INT64_MAX &&
                       (*b.number & (*b.number + 1)) == 0;
  if (is_mask) return masked(a, *b.number + 1);
  return user_error(fmt::format("a plan has no operator '{}'", op));
}

bool is_whole(const std::string& text) {
  const auto part = [](char c) { return std::isalnum(uint8_t(c)) || c == '_' || c == '.'; };
  const auto end = std::ranges::find_if_not(text, part);
  if (end == text.end()) return true;
  return *end == '(' && std::ranges::find(text, ')') == text.end() - 1;
}

}  // namespace

HostValue host_integer(int64_t number) {
  HostValue out{.text = std::to_string(number), .number = number};
  if (number < 0) out.binding = Binding::sign;
  out.boolean = number == 0 || number == 1;
  return out;
}

HostValue host_real(std::string text) {
  const bool negative = text.starts_with('-');
  return {.kind = Kind::real,
          .text = std::move(text),
          .binding = negative ? Binding::sign : Binding::whole};
}

HostValue plan_value(const std::string& plan_expression) {
  HostValue out{.text = plan_expression};
  int64_t number = 0;
  const char* end = plan_expression.data() + plan_expression.size();
  if (plan_expression.size() < 19 && !plan_expression.empty() &&
      std::ranges::all_of(plan_expression, [](char c) { return c >= '0' && c <= '9'; })) {
    for (const char* c = plan_expression.data(); c != end; ++c) number = number * 10 + (*c - '0');
    return host_integer(number);
  }
  if (!is_whole(plan_expression)) out.binding = Binding::conditional;
  return out;
}

HostValue host_sizes(std::vector<HostValue> sizes) {
  while (sizes.size() < 3) sizes.push_back(host_integer(1));
  return {.kind = Kind::sizes, .sizes = std::move(sizes)};
}

HostValue host_unreadable(Error why) {
  return {.kind = Kind::unreadable, .why = std::move(why)};
}

Result<HostValue> host_call(const char* function, const std::vector<HostValue>& arguments) {
  HostValue out{.text = std::string(function) + "("};
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == Kind::unreadable) return fail(arguments[i].why);
    if (arguments[i].kind != Kind::integer) return user_error("this is no integer");
    out.text += (i ? ", " : "") + arguments[i].text;
  }
  out.text += ")";
  return checked(std::move(out));
}

Result<HostValue> binary(std::string_view op, const HostValue& a, const HostValue& b) {
  for (const HostValue* one : {&a, &b})
    if (one->kind == Kind::unreadable) return fail(one->why);
  const bool equality = op == "==" || op == "!=";
  if (a.kind == Kind::dtype && b.kind == Kind::dtype && equality)
    return host_integer((a.dtype == b.dtype) == (op == "=="));
  for (const HostValue* one : {&a, &b}) {
    if (one->kind == Kind::real)
      return user_error("cutegen does not repeat floating-point arithmetic of host code");
    if (one->kind != Kind::integer) return user_error("this is no integer");
  }
  if (op == "&&" || op == "||") return logical(op == "&&", a, b);
  const auto known = plan_operators().find(op);
  if (known == plan_operators().end()) return bits(op, a, b);
  if (a.number && b.number)
    if (const auto number = folded(op, *a.number, *b.number)) return host_integer(*number);
  const Binding binding = known->second;
  const bool product = binding == Binding::product;
  HostValue out{.text = fmt::format("{}{}{}{}{}", wrapped(a, binding), product ? "" : " ", op,
                                    product ? "" : " ", wrapped(b, Binding(int(binding) + 1))),
                .binding = binding};
  out.boolean = binding == Binding::equality || binding == Binding::relation;
  return checked(std::move(out));
}

Result<HostValue> negated(const HostValue& a) {
  if (a.kind == Kind::unreadable) return fail(a.why);
  if (a.number && *a.number != INT64_MIN) return host_integer(-*a.number);
  if (a.kind != Kind::integer && a.kind != Kind::real) return user_error("this is no number");
  HostValue out = a;
  out.text = "-" + wrapped(a, Binding::whole);
  out.binding = Binding::sign;
  out.boolean = false;
  return checked(std::move(out));
}

Result<HostValue> inverted(const HostValue& a) {
  constexpr std::string_view kZero = " == 0";
  if (a.binding == Binding::equality && a.text.ends_with(kZero)) {
    HostValue out = a;
    out.text.replace(out.text.size() - kZero.size(), kZero.size(), " != 0");
    return out;
  }
  return binary("==", a, host_integer(0));
}

Result<HostValue> chosen(const HostValue& condition, const HostValue& then,
                         const HostValue& other) {
  if (condition.kind == Kind::unreadable) return fail(condition.why);
  if (condition.kind != Kind::integer) return user_error("the condition is no integer");
  if (condition.number) return *condition.number != 0 ? then : other;
  if (same_value(then, other)) return then;
  for (const HostValue* one : {&then, &other})
    if (one->kind == Kind::unreadable) return fail(one->why);
  if (then.kind != other.kind) return user_error("the two values differ in kind");
  if (then.kind == Kind::sizes) {
    std::vector<HostValue> sizes;
    for (size_t i = 0; i < 3; ++i) {
      CG_TRY(HostValue one, chosen(condition, then.sizes[i], other.sizes[i]));
      sizes.push_back(std::move(one));
    }
    return host_sizes(std::move(sizes));
  }
  if (then.kind != Kind::integer && then.kind != Kind::real)
    return user_error("a plan chooses only between numbers");
  HostValue out{
      .kind = then.kind,
      .text = fmt::format("{} ? {} : {}", wrapped(condition, Binding::equality),
                          wrapped(then, Binding::equality), wrapped(other, Binding::equality)),
      .binding = Binding::conditional};
  out.boolean = then.boolean && other.boolean;
  return checked(std::move(out));
}

bool same_value(const HostValue& a, const HostValue& b) {
  if (a.kind != b.kind || a.text != b.text || a.tensor != b.tensor || a.dtype != b.dtype ||
      a.sizes.size() != b.sizes.size() || a.why.text() != b.why.text() ||
      a.spelled.size() != b.spelled.size())
    return false;
  for (size_t i = 0; i < a.spelled.size(); ++i)
    if (a.spelled[i].text != b.spelled[i].text) return false;
  for (size_t i = 0; i < a.sizes.size(); ++i)
    if (!same_value(a.sizes[i], b.sizes[i])) return false;
  return true;
}

}  // namespace cutegen::eval
