// SPDX-License-Identifier: Apache-2.0
// The launch expression of host code.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "eval/source/host_state.h"

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

class LaunchExpression {
 public:
  explicit LaunchExpression(HostState& state) : s_(state) {}

  // KERNEL<ARGUMENTS><<<grid, block, shared, stream>>>(arguments)
  Result<void> launch(TokenRange range) {
    size_t open = range.first;
    while (!is_mark(s_.t[open], "<<<")) ++open;
    const Token& at = s_.t[range.first];
    if (s_.launched) return s_.context.error(at, "the launcher launches a second time");
    size_t end = open + 1, depth = 0;
    for (; end + 2 < range.second; ++end) {
      depth += s_.t[end].mark('(') ? 1 : 0;
      depth -= s_.t[end].mark(')') && depth > 0 ? 1 : 0;
      if (depth == 0 && s_.t[end].mark('>') && s_.t[end + 1].mark('>') && s_.t[end + 2].mark('>'))
        break;
    }
    const size_t call = end + 3;
    if (call >= range.second || !s_.t[call].mark('('))
      return s_.context.error(at, "cutegen cannot read this launch");
    const auto config = comma_parts(s_.t, {open + 1, end});
    if (config.size() < 2 || config.size() > 4)
      return s_.context.error(at, "a launch has a grid and a block");
    CG_CHECK(designated({range.first, open}));
    s_.launch.at = at;
    s_.launch.grid = sizes(config[0]), s_.launch.grid_at = s_.t[config[0].first];
    s_.launch.block = sizes(config[1]), s_.launch.block_at = s_.t[config[1].first];
    s_.launch.shared = config.size() > 2 ? s_.value_or_reason(config[2]) : host_integer(0);
    for (const TokenRange& one : comma_parts(s_.t, {call + 1, closing(s_.t, call, range.second)})) {
      s_.launch.arguments.push_back(s_.value_or_reason(one));
      s_.launch.argument_at.push_back(s_.t[std::min(one.first, s_.t.size() - 1)]);
    }
    s_.launched = true;
    return {};
  }

 private:
  HostValue sizes(TokenRange range) {
    HostValue out = s_.value_or_reason(range);
    return out.kind == Kind::integer ? host_sizes({out}) : out;
  }

  // The kernel and its template arguments.
  Result<void> designated(TokenRange range) {
    std::vector<Token> words = s_.substituted(range);
    if (words.size() == 1)
      if (const auto at = s_.scope.variables.find(words[0].text); at != s_.scope.variables.end())
        words = at->second.spelled;
    if (!words.empty() && words.front().mark('&')) words.erase(words.begin());
    size_t i = 0;
    while (i + 2 < words.size() && is_mark(words[i + 1], "::")) i += 2;
    const bool named = i < words.size() && words[i].kind == Token::Kind::word;
    const bool templated = i + 2 < words.size() && words[i + 1].mark('<') && words.back().mark('>');
    if (!named || (!templated && i + 1 != words.size()))
      return s_.context.error(s_.t[range.first], "cutegen cannot read which kernel is launched");
    s_.launch.kernel = words[i].text;
    s_.launch.templated = templated;
    if (!templated) return {};
    return template_arguments(words, {i + 2, words.size() - 1});
  }

  Result<void> template_arguments(const std::vector<Token>& words, TokenRange range) {
    size_t begin = range.first;
    int depth = 0;
    for (size_t i = range.first; i <= range.second; ++i) {
      const bool last = i == range.second;
      if (!last && words[i].mark('(')) i = closing(words, i, range.second);
      if (i < range.second) depth += words[i].mark('<') ? 1 : words[i].mark('>') ? -1 : 0;
      if (i < range.second && (depth != 0 || !words[i].mark(','))) continue;
      CG_CHECK(template_argument(words, {begin, std::min(i, range.second)}));
      begin = i + 1;
    }
    return {};
  }

  // A constant, or a type.
  Result<void> template_argument(const std::vector<Token>& words, TokenRange range) {
    if (range.first >= range.second)
      return s_.context.error(s_.t.front(), "a template argument is missing");
    auto number = host_expression(s_.context, s_.scope, words, range);
    if (number && number->kind == Kind::integer && number->number) {
      const Token& first = words[range.first];
      s_.launch.template_arguments.push_back(first.is("true") || first.is("false") ? first.text
                                                                                   : number->text);
      return {};
    }
    std::string text;
    for (size_t i = range.first; i < range.second; ++i) {
      const Token& word = words[i];
      const bool variable =
          word.kind == Token::Kind::word && s_.scope.variables.contains(word.text);
      const bool plain = word.kind == Token::Kind::word || word.kind == Token::Kind::number ||
                         word.mark('<') || word.mark('>') || word.mark(',') || word.mark('*') ||
                         word.mark('&') || is_mark(word, "::");
      if (variable || !plain)
        return s_.context.error(word,
                                fmt::format("the template argument '{}' is no constant and no "
                                            "type that cutegen knows",
                                            word.text));
      const bool blank = !text.empty() && word.kind == Token::Kind::word &&
                         (std::isalnum(uint8_t(text.back())) || text.back() == '_');
      text += (blank ? " " : "") + word.text;
      s_.note_type(word.text);
    }
    s_.launch.template_arguments.push_back(std::move(text));
    return {};
  }

  HostState& s_;
};

}  // namespace

Result<void> read_launch(HostState& state, TokenRange range) {
  return LaunchExpression(state).launch(range);
}

}  // namespace cutegen::eval
