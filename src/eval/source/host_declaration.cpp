// SPDX-License-Identifier: Apache-2.0
// Declarations of variables in host code.
#include <fmt/format.h>

#include <algorithm>

#include "eval/source/host_state.h"

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

bool is_allocation(const std::vector<Token>& t, TokenRange range) {
  return has_token(t, range, [](const Token& token) {
    return token.is("empty_like") || token.is("empty") || token.is("new_empty") ||
           token.is("empty_strided");
  });
}

class HostDeclaration {
 public:
  explicit HostDeclaration(HostState& state) : s_(state) {}

  Result<void> declaration(TokenRange range, size_t name) {
    const TokenRange type_range{range.first, name};
    const HostType type = host_type(s_.t, type_range, s_.scope);
    const bool fixed = has_token(s_.t, type_range,
                                 [](const Token& x) { return x.is("const") || x.is("constexpr"); });
    for (const TokenRange& part : comma_parts(s_.t, {name, range.second})) {
      if (part.first >= part.second || s_.t[part.first].kind != Token::Kind::word)
        return s_.context.error(s_.t[range.first], "cutegen cannot read this declaration");
      HostValue made = initial(type, part);
      if (made.kind == Kind::unreadable) s_.forget({part.first + 1, part.second}, made.why);
      made.fixed = fixed;
      s_.declared.insert(s_.t[part.first].text);
      s_.scope.variables[s_.t[part.first].text] = std::move(made);
    }
    return {};
  }

 private:
  // The value of the declarator `NAME`, `NAME = VALUE`, `NAME(VALUES)` or `NAME{VALUES}`.
  HostValue initial(HostType type, TokenRange part) {
    const Token& name = s_.t[part.first];
    const size_t at = part.first + 1;
    if (at >= part.second) {
      if (type == HostType::sizes) return host_sizes({});
      return host_unreadable(
          s_.context.error(name, fmt::format("'{}' has no value here", name.text)).value());
    }
    const TokenRange value{at + 1, part.second};
    if (s_.t[at].mark('=')) {
      if (is_allocation(s_.t, value)) return allocated(name);
      if (value.first < value.second && s_.t[value.first].mark('[')) return spelled(value);
      if (is_kernel(value)) return spelled(value);
      return converted(type, s_.value_or_reason(value), name);
    }
    const bool constructs = s_.t[at].mark('(') || s_.t[at].mark('{');
    if (!constructs)
      return host_unreadable(
          s_.context.error(name, "cutegen cannot read this declaration").value());
    const TokenRange inside{at + 1, closing(s_.t, at, part.second)};
    if (type != HostType::sizes) return converted(type, s_.value_or_reason(inside), name);
    std::vector<HostValue> sizes;
    for (const TokenRange& one : comma_parts(s_.t, inside)) {
      sizes.push_back(s_.value_or_reason(one));
      if (sizes.back().kind == Kind::unreadable) return sizes.back();
      if (sizes.back().kind == Kind::sizes && sizes.size() == 1) return sizes.back();
    }
    if (sizes.size() > 3)
      return host_unreadable(s_.context.error(name, "a dim3 has at most three sizes").value());
    return host_sizes(std::move(sizes));
  }

  HostValue allocated(const Token& name) {
    const auto at = s_.returned.find(name.text);
    if (at == s_.returned.end())
      return host_unreadable(
          s_.context
              .error(name, fmt::format("the launcher allocates '{}', which it does not return as "
                                       "the result of the task",
                                       name.text))
              .value());
    HostValue out{.kind = Kind::tensor};
    out.tensor = at->second;
    return out;
  }

  HostValue spelled(TokenRange range) {
    HostValue out{.kind = Kind::function};
    out.spelled = s_.substituted(range);
    return out;
  }

  // Whether a value is `KERNEL`, `&KERNEL` or `KERNEL<ARGUMENTS>`.
  bool is_kernel(TokenRange range) const {
    if (range.first < range.second && s_.t[range.first].mark('&')) ++range.first;
    size_t i = range.first;
    while (i + 2 < range.second && is_mark(s_.t[i + 1], "::")) i += 2;
    if (i >= range.second || (i + 1 < range.second && !s_.t[i + 1].mark('<'))) return false;
    return std::ranges::any_of(s_.context.outline.functions, [&](const SourceFunction& f) {
      return f.global && f.name == s_.t[i].text;
    });
  }

  HostValue converted(HostType type, HostValue value, const Token& at) {
    if (type == HostType::unknown && value.kind == Kind::tensor) return value;
    if (type == HostType::unknown && value.kind != Kind::unreadable)
      return host_unreadable(
          s_.context.error(at, fmt::format("cutegen does not know the type of '{}'", at.text))
              .value());
    auto out = host_cast(s_.context, type, std::move(value), at);
    return out ? std::move(*out) : host_unreadable(out.error());
  }

  HostState& s_;
};

}  // namespace

size_t declared_name(const HostState& state, TokenRange range) {
  const size_t at = after_type(state.t, range.first, range.second);
  if (at <= range.first || at >= range.second) return 0;
  return state.t[at].kind == Token::Kind::word ? at : 0;
}

Result<void> read_declaration(HostState& state, TokenRange range, size_t name) {
  return HostDeclaration(state).declaration(range, name);
}

void find_returned(HostState& state, const std::vector<std::string>& outputs) {
  for (size_t i = 0; i + 1 < state.t.size(); ++i) {
    if (!state.t[i].is("return")) continue;
    const size_t end = state.statement_end(i);
    size_t open = i + 1;
    while (open < end && !state.t[open].mark('{') && !state.t[open].mark('(')) ++open;
    const TokenRange inside =
        open < end ? TokenRange{open + 1, closing(state.t, open, end)} : TokenRange{i + 1, end};
    const auto parts = comma_parts(state.t, inside);
    if (parts.size() != outputs.size()) continue;
    for (size_t k = 0; k < parts.size(); ++k)
      if (parts[k].second == parts[k].first + 1)
        state.returned[state.t[parts[k].first].text] = outputs[k];
  }
}

}  // namespace cutegen::eval
