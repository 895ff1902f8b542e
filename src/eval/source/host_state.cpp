// SPDX-License-Identifier: Apache-2.0
#include "eval/source/host_state.h"

#include <algorithm>

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

}  // namespace

Result<HostValue> HostState::value(TokenRange range) {
  if (range.first >= range.second)
    return context.error(t[std::min(range.first, t.size() - 1)], "an expression is missing");
  return host_expression(context, scope, t, range);
}

HostValue HostState::value_or_reason(TokenRange range) {
  auto out = value(range);
  if (out) return std::move(*out);
  return host_unreadable(out.error());
}

void HostState::forget(TokenRange range, const Error& why) {
  for (size_t i = range.first; i < range.second; ++i) {
    const auto at = scope.variables.find(t[i].text);
    if (at == scope.variables.end() || at->second.fixed) continue;
    if (at->second.kind == Kind::integer || at->second.kind == Kind::real ||
        at->second.kind == Kind::sizes)
      at->second = host_unreadable(why);
  }
}

size_t HostState::statement_end(size_t i) const {
  for (; i < t.size() && !t[i].mark(';') && !t[i].mark('}'); ++i)
    if (t[i].mark('(') || t[i].mark('[') || t[i].mark('{')) i = closing(t, i, t.size());
  return std::min(i, t.size());
}

Result<void> HostState::alias(TokenRange range) {
  const bool is_using = t[range.first].is("using");
  if (range.second < range.first + 3 || t[range.first + 1].is("namespace")) return {};
  const Token& name = t[is_using ? range.first + 1 : range.second - 1];
  const TokenRange type = is_using ? TokenRange{range.first + 3, range.second}
                                   : TokenRange{range.first + 1, range.second - 1};
  if (type.first < type.second) scope.types[name.text] = substituted(type);
  return {};
}

std::vector<Token> HostState::substituted(TokenRange range) const {
  std::vector<Token> out;
  for (size_t i = range.first; i < range.second; ++i) {
    const bool torch = t[i].is("at") || t[i].is("c10") || t[i].is("torch");
    if (torch && i + 2 < range.second && is_mark(t[i + 1], "::") &&
        *device_type(t[i + 2].text) != 0) {
      out.push_back(t[i + 2]);
      out.back().text = device_type(t[i + 2].text);
      i += 2;
      continue;
    }
    const auto alias = scope.types.find(t[i].text);
    if (t[i].kind == Token::Kind::word && alias != scope.types.end())
      out.insert(out.end(), alias->second.begin(), alias->second.end());
    else
      out.push_back(t[i]);
  }
  return out;
}

Result<void> HostState::demand(const HostValue& condition, const Token& at) {
  if (condition.kind != Kind::integer) return {};
  const bool fails = condition.number && *condition.number == 0;
  if (branches > 0) {
    returned_early = returned_early || fails;
    return {};
  }
  if (fails) return context.error(at, "the launcher refuses this task here");
  if (!condition.number) launch.conditions.push_back(condition);
  return {};
}

void HostState::note_type(const std::string& type) {
  launch.uses_half = launch.uses_half || type == "__half";
  launch.uses_bfloat16 = launch.uses_bfloat16 || type == "__nv_bfloat16";
}

bool has_token(const std::vector<Token>& t, TokenRange range,
               const std::function<bool(const Token&)>& matches) {
  for (size_t i = range.first; i < range.second; ++i)
    if (matches(t[i])) return true;
  return false;
}

bool mentions(const std::vector<Token>& t, TokenRange range, std::string_view part) {
  return has_token(t, range, [&](const Token& token) {
    return token.kind == Token::Kind::word && token.text.find(part) != std::string::npos;
  });
}

}  // namespace cutegen::eval
