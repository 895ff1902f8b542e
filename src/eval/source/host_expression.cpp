// SPDX-License-Identifier: Apache-2.0
#include "eval/source/host_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

constexpr int kMostHostSteps = 100000;

int precedence_of(std::string_view text) {
  static const std::map<std::string_view, int> table{
      {"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4},  {"&", 5},  {"==", 6},
      {"!=", 6}, {"<", 7},  {">", 7}, {"<=", 7}, {">=", 7}, {"<<", 8},
      {">>", 8}, {"+", 9},  {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10}};
  const auto at = table.find(text);
  return at == table.end() ? 0 : at->second;
}

Result<HostValue> host_literal(const HostContext& context, const Token& token) {
  std::string text = token.text;
  std::erase(text, '\'');
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (!hex && text.find_first_of(".eEfF") != std::string::npos) {
    while (!text.empty() && std::string_view("fFlL").find(text.back()) != std::string_view::npos)
      text.pop_back();
    double real = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
    if (error != std::errc() || end != text.data() + text.size())
      return context.error(token, "cutegen cannot read this number");
    return host_real(fmt::format("{}", real));
  }
  while (!text.empty() && std::string_view("uUlLzZ").find(text.back()) != std::string_view::npos)
    text.pop_back();
  const bool binary_digits = text.starts_with("0b") || text.starts_with("0B");
  const int base = hex ? 16 : binary_digits ? 2 : text.size() > 1 && text[0] == '0' ? 8 : 10;
  const char* begin = text.data() + (base == 16 || base == 2 ? 2 : 0);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || begin == end)
    return context.error(token, "cutegen cannot read this number");
  return host_integer(number);
}

}  // namespace

tl::unexpected<Error> HostContext::error(const Token& at, std::string message) const {
  return user_error(std::move(message), fmt::format("{}:{}:{}", file, at.line, at.column));
}

Error HostContext::placed(Error error, const Token& at) const {
  if (error.where.empty()) error.where = fmt::format("{}:{}:{}", file, at.line, at.column);
  return error;
}

const Token& HostCursor::here() const {
  return tokens[std::min(at, std::max(end, size_t{1}) - 1)];
}

Result<void> HostCursor::expect(std::string_view text) {
  if (!mark(text)) return context.error(here(), fmt::format("expected '{}'", text));
  ++at;
  return {};
}

void HostCursor::skip_template_arguments() {
  int depth = 0;
  for (; more() && !mark("(") && !mark(";"); ++at) {
    depth += mark("<") ? 1 : mark(">") ? -1 : 0;
    if (depth != 0) continue;
    ++at;
    return;
  }
}

Result<HostValue> HostExpression::whole() {
  if (!c_.more()) return user_error("an expression is missing", c_.context.file);
  CG_TRY(HostValue out, conditional());
  if (c_.more()) return c_.context.error(c_.here(), fmt::format("unexpected '{}'", c_.here().text));
  return out;
}

Result<HostValue> HostExpression::conditional() {
  const HostLevel level(c_.context.depth);
  CG_CHECK(check_bounds());
  const Token& first = c_.here();
  CG_TRY(HostValue condition, operation(1));
  if (!c_.mark("?")) return condition;
  ++c_.at;
  CG_TRY(HostValue then, conditional());
  CG_CHECK(c_.expect(":"));
  CG_TRY(HostValue other, conditional());
  auto out = chosen(condition, then, other);
  if (!out) return fail(c_.context.placed(out.error(), first));
  return out;
}

Result<HostValue> HostExpression::operation(int least) {
  CG_TRY(HostValue left, unary());
  while (c_.more()) {
    const Token& token = c_.here();
    std::string op = token.kind == Token::Kind::punctuation ? token.text : std::string();
    const bool two = op == ">" && c_.at + 1 < c_.end && c_.tokens[c_.at + 1].mark('>');
    if (two) op = ">>";
    if (op == ">" && c_.at + 1 < c_.end && c_.tokens[c_.at + 1].mark('=')) op = ">=";
    const int precedence = precedence_of(op);
    if (precedence == 0 || precedence < least) break;
    c_.at += op == ">>" || op == ">=" ? 2 : 1;
    CG_TRY(HostValue right, operation(precedence + 1));
    auto result = binary(op, left, right);
    if (!result) return fail(c_.context.placed(result.error(), token));
    left = std::move(*result);
  }
  return left;
}

Result<HostValue> HostExpression::unary() {
  const HostLevel level(c_.context.depth);
  CG_CHECK(check_bounds());
  const Token& token = c_.here();
  if (c_.mark("(")) return parentheses();
  if (!c_.mark("-") && !c_.mark("+") && !c_.mark("!")) return primary();
  const bool minus = c_.mark("-"), plus = c_.mark("+");
  ++c_.at;
  CG_TRY(HostValue value, unary());
  if (plus) return value;
  auto out = minus ? negated(value) : inverted(value);
  if (!out) return fail(c_.context.placed(out.error(), token));
  return out;
}

// A C cast, or an expression in parentheses.
Result<HostValue> HostExpression::parentheses() {
  const Token& open = c_.here();
  const size_t close = closing(c_.tokens, c_.at, c_.end);
  if (close >= c_.end) return c_.context.error(open, "a parenthesis is not closed");
  const HostType type = host_type(c_.tokens, {c_.at + 1, close}, c_.scope);
  const bool known =
      type != HostType::unknown || (close > c_.at + 1 && c_.tokens[close - 1].mark('*'));
  if (known && after_type(c_.tokens, c_.at + 1, close) == close) {
    c_.at = close + 1;
    CG_TRY(HostValue value, unary());
    return host_cast(c_.context, type, std::move(value), open);
  }
  CG_TRY(HostValue value, host_expression(c_.context, c_.scope, c_.tokens, {c_.at + 1, close}));
  c_.at = close + 1;
  return read_host_members(c_, std::move(value));
}

Result<HostValue> HostExpression::primary() {
  if (!c_.more()) return c_.context.error(c_.here(), "an expression is missing");
  const Token& token = c_.here();
  if (token.kind == Token::Kind::number) {
    ++c_.at;
    return host_literal(c_.context, token);
  }
  if (token.kind == Token::Kind::word) {
    CG_TRY(HostValue value, read_host_name(c_));
    return read_host_members(c_, std::move(value));
  }
  if (c_.mark("{")) {  // the sizes of a dim3
    CG_TRY(auto sizes, arguments());
    if (sizes.empty() || sizes.size() > 3)
      return c_.context.error(token, "one to three sizes are needed");
    return host_sizes(std::move(sizes));
  }
  return c_.context.error(token, fmt::format("cutegen cannot read '{}' here", token.text));
}

Result<std::vector<HostValue>> HostExpression::arguments() {
  const Token& open = c_.here();
  if (!c_.mark("(") && !c_.mark("{")) return c_.context.error(open, "expected '('");
  const size_t close = closing(c_.tokens, c_.at, c_.end);
  if (close >= c_.end) return c_.context.error(open, "a parenthesis is not closed");
  std::vector<HostValue> out;
  for (const TokenRange& part : comma_parts(c_.tokens, {c_.at + 1, close})) {
    CG_TRY(HostValue value, host_expression(c_.context, c_.scope, c_.tokens, part));
    out.push_back(std::move(value));
  }
  c_.at = close + 1;
  return out;
}

Result<HostValue> host_cast(const HostContext& context, HostType type, HostValue value,
                            const Token& at) {
  if (value.kind == Kind::unreadable || type == HostType::any) return value;
  const bool number = value.kind == Kind::integer || value.kind == Kind::real;
  if (type == HostType::integer && value.kind == Kind::integer) return value;
  if (type == HostType::pointer && value.kind == Kind::pointer) return value;
  if (type == HostType::sizes && value.kind == Kind::sizes) return value;
  if (type == HostType::sizes && value.kind == Kind::integer) return host_sizes({value});
  if (type == HostType::real && number) {
    value.kind = Kind::real;
    value.number.reset();
    return value;
  }
  if (type == HostType::boolean && value.kind == Kind::integer)
    return value.boolean ? Result<HostValue>(value) : binary("!=", value, host_integer(0));
  if (type == HostType::integer && value.kind == Kind::real)
    return context.error(at, "cutegen does not repeat floating-point arithmetic of host code");
  return context.error(at, "cutegen cannot read this conversion");
}

Result<void> HostExpression::check_bounds() const {
  if (c_.context.depth > kMostNesting || ++c_.context.steps > kMostHostSteps)
    return c_.context.error(c_.here(), "the host code is too long or too deep");
  return {};
}

Result<HostValue> host_expression(HostContext& context, const HostScope& scope,
                                  const std::vector<Token>& tokens, TokenRange range) {
  HostCursor cursor{
      .context = context, .scope = scope, .tokens = tokens, .at = range.first, .end = range.second};
  return HostExpression(cursor).whole();
}

}  // namespace cutegen::eval
