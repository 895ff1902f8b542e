// SPDX-License-Identifier: Apache-2.0
// Assignments and checks of host code.
#include <fmt/format.h>

#include "eval/source/host_state.h"

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

// Calls without effect on the launch.
bool is_harmless(const std::string& name) {
  static const std::set<std::string> kHarmless{"cudaFuncSetAttribute",   "cudaGetLastError",
                                               "cudaPeekAtLastError",    "cudaDeviceSynchronize",
                                               "cudaSetDevice",          "cudaStreamSynchronize",
                                               "static_assert",          "assert",
                                               "cudaFuncSetCacheConfig", "AT_ERROR"};
  return kHarmless.contains(name) || name.find("CHECK") != std::string::npos;
}

class HostEffect {
 public:
  explicit HostEffect(HostState& state) : s_(state) {}

  // Assignments, and calls without effect on the launch.
  Result<void> effect(TokenRange range) {
    const Token& first = s_.t[range.first];
    size_t i = range.first;
    if ((is_mark(first, "++") || is_mark(first, "--")) && i + 1 < range.second) ++i;
    size_t last = i;
    while (last + 2 < range.second && is_mark(s_.t[last + 1], "::")) last += 2;
    if (last + 1 < range.second && s_.t[last + 1].mark('(') && is_harmless(s_.t[last].text))
      return check(last, range);
    const auto at = s_.scope.variables.find(s_.t[i].text);
    if (s_.t[i].kind == Token::Kind::word && at != s_.scope.variables.end())
      return assignment(range, i, at->second);
    if (first.mark('(') && range.second == range.first + 7 && s_.t[range.first + 1].is("void"))
      return {};
    return s_.context.error(first, fmt::format("cutegen cannot read this statement, which begins "
                                               "with '{}'",
                                               first.text));
  }

 private:
  Result<void> assignment(TokenRange range, size_t name, HostValue& variable) {
    size_t at = name + 1;
    HostValue* part = &variable;
    const bool member = at + 1 < range.second && s_.t[at].mark('.');
    const bool is_size = member && variable.kind == Kind::sizes;
    if (is_size) {
      const Token& axis = s_.t[at + 1];
      const size_t which = axis.is("x") ? 0 : axis.is("y") ? 1 : axis.is("z") ? 2 : 3;
      if (which == 3) return s_.context.error(axis, "a dim3 has x, y and z");
      part = &variable.sizes[which];
      at += 2;
    }
    if (member && variable.kind == Kind::unreadable) return {};  // it stays unreadable
    const std::string op = at < range.second ? s_.t[at].text : std::string();
    const bool step = is_mark(s_.t[range.first], "++") || is_mark(s_.t[range.first], "--") ||
                      (at + 1 == range.second && (op == "++" || op == "--"));
    if (step) {
      const bool up = is_mark(s_.t[range.first], "++") || op == "++";
      return keep(*part, binary(up ? "+" : "-", *part, host_integer(1)), s_.t[name]);
    }
    const bool assigns =
        op == "=" || (op.size() >= 2 && op.back() == '=' && op != "==" && op != "<=" && op != "!=");
    if (!assigns || at + 1 >= range.second)
      return s_.context.error(
          s_.t[range.first],
          fmt::format("cutegen cannot read what happens to '{}'", s_.t[name].text));
    HostValue right = s_.value_or_reason({at + 1, range.second});
    if (right.kind == Kind::unreadable) s_.forget({at + 1, range.second}, right.why);
    if (is_size && variable.kind != Kind::sizes) return {};  // the whole variable is unreadable
    if (op != "=")
      return keep(*part, binary(op.substr(0, op.size() - 1), *part, right), s_.t[name]);
    if (part->kind == Kind::sizes && right.kind == Kind::integer) right = host_sizes({right});
    const bool fits = part->kind == Kind::unreadable || part->kind == right.kind ||
                      right.kind == Kind::unreadable;
    if (!fits)
      right = host_unreadable(
          s_.context.error(s_.t[name], "cutegen cannot read this conversion").value());
    *part = std::move(right);
    return {};
  }

  Result<void> keep(HostValue& to, Result<HostValue> value, const Token& at) {
    to = value ? std::move(*value) : host_unreadable(s_.context.placed(value.error(), at));
    return {};
  }

  // TORCH_CHECK and assert: the parts that cutegen reads become conditions of the plan.
  Result<void> check(size_t name, TokenRange range) {
    const bool condition = s_.t[name].is("TORCH_CHECK") || s_.t[name].is("assert");
    if (s_.t[name].is("AT_ERROR")) return s_.demand(host_integer(0), s_.t[name]);
    const size_t close = closing(s_.t, name + 1, range.second);
    const auto parts = comma_parts(s_.t, {name + 2, close});
    if (!condition || parts.empty()) return {};
    size_t begin = parts[0].first;
    for (size_t i = begin; i <= parts[0].second; ++i) {
      if (i < parts[0].second && (s_.t[i].mark('(') || s_.t[i].mark('[') || s_.t[i].mark('{')))
        i = closing(s_.t, i, parts[0].second);
      if (i < parts[0].second && is_mark(s_.t[i], "||")) return {};
      if (i < parts[0].second && !is_mark(s_.t[i], "&&")) continue;
      if (auto holds = s_.value({begin, i})) CG_CHECK(s_.demand(*holds, s_.t[begin]));
      begin = i + 1;
    }
    return {};
  }

  HostState& s_;
};

}  // namespace

Result<void> read_effect(HostState& state, TokenRange range) {
  return HostEffect(state).effect(range);
}

}  // namespace cutegen::eval
