// SPDX-License-Identifier: Apache-2.0
#include "eval/source/launcher.h"

#include <fmt/format.h>

#include <utility>

#include "eval/source/host_state.h"

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

constexpr int kMostStatementDepth = 32;

// Merges the variables after `if (holds)`: a variable with different values in `then` and in the
// present scope becomes `holds ? value in then : value in scope`.
void merge(HostState& state, const HostValue& holds, const HostScope& then, const Token& at) {
  for (auto& [name, other] : state.scope.variables) {
    const auto first = then.variables.find(name);
    if (first == then.variables.end() || same_value(first->second, other)) continue;
    auto value = chosen(holds, first->second, other);
    const bool fixed = other.fixed;
    other = value ? std::move(*value) : host_unreadable(state.context.placed(value.error(), at));
    other.fixed = fixed;
  }
}

Token word_at(std::string text, const Token& at) {
  return {.kind = Token::Kind::word, .text = std::move(text), .line = at.line, .column = at.column};
}

// Runs the statements of a launcher on expressions instead of numbers.
class LauncherReader {
 public:
  LauncherReader(HostContext& context, std::vector<Token> body, const LauncherQuery& query)
      : s_{.context = context,
           .t = std::move(body),
           .scope = {.variables = query.parameters, .types = {}},
           .launch = {}},
        name_(query.function->name),
        line_(context.outline.tokens[query.function->begin].line) {
    find_returned(s_, query.outputs);
  }

  Result<HostLaunch> run() {
    CG_CHECK(block({0, s_.t.size()}));
    if (!s_.launched)
      return user_error(fmt::format("the launcher '{}' has no launch <<<...>>>", name_),
                        fmt::format("{}:{}", s_.context.file, line_));
    return std::move(s_.launch);
  }

 private:
  Result<void> block(TokenRange range) {
    if (++depth_ > kMostStatementDepth)
      return s_.context.error(s_.t[range.first], "the host code is too deep");
    const HostScope before = s_.scope;
    const std::set<std::string> outer = std::move(s_.declared);
    s_.declared.clear();
    for (size_t i = range.first; i < range.second && !s_.returned_early;) {
      CG_TRY(i, statement(i, range.second));
    }
    for (const std::string& name : s_.declared) {
      const auto old = before.variables.find(name);
      if (old == before.variables.end())
        s_.scope.variables.erase(name);
      else
        s_.scope.variables[name] = old->second;
    }
    s_.scope.types = before.types;
    s_.declared = outer;
    --depth_;
    return {};
  }

  // Reads one statement. Returns the index after it.
  Result<size_t> statement(size_t i, size_t end) {
    const Token& t = s_.t[i];
    if (t.mark(';')) return i + 1;
    if (t.kind == Token::Kind::directive)
      return s_.context.error(t, "the launcher contains a preprocessor directive");
    if (t.mark('{')) {
      const size_t close = closing(s_.t, i, end);
      CG_CHECK(block({i + 1, close}));
      return close + 1;
    }
    if (t.is("if")) return condition(i, end);
    for (const char* word : {"for", "while", "do", "switch", "goto", "try", "else", "case"})
      if (t.is(word))
        return s_.context.error(t,
                                fmt::format("cutegen does not run host code such as '{}'", word));
    const size_t stop = std::min(s_.statement_end(i), end);
    if (t.is("return") || t.is("throw")) {
      s_.returned_early = true;
      return stop + 1;
    }
    CG_CHECK(simple({i, stop}));
    return stop + 1;
  }

  Result<void> simple(TokenRange range) {
    const Token& t = s_.t[range.first];
    const bool launches = has_token(s_.t, range, [](const Token& x) { return is_mark(x, "<<<"); });
    if (mentions(s_.t, {range.first, range.first + 1}, "DISPATCH")) return dispatch(range);
    if (launches) return read_launch(s_, range);
    if (t.is("using") || t.is("typedef")) return s_.alias(range);
    if (const size_t name = declared_name(s_, range)) return read_declaration(s_, range, name);
    return read_effect(s_, range);
  }

  // if (...) ... else ...
  Result<size_t> condition(size_t i, size_t end) {
    const Token& at = s_.t[i];
    size_t open = i + 1;
    if (open < end && s_.t[open].is("constexpr")) ++open;
    if (open >= end || !s_.t[open].mark('('))
      return s_.context.error(at, "the condition of 'if' is missing");
    const size_t close = closing(s_.t, open, end);
    HostValue holds = s_.value_or_reason({open + 1, close});
    const HostScope before = s_.scope;
    const bool known = holds.kind == Kind::integer && holds.number.has_value();
    const bool launched = s_.launched;
    const auto run = [&](size_t from, bool taken) -> Result<size_t> {
      if (from >= end) return s_.context.error(at, "a statement is missing");
      if (!taken) return skip(from, end);
      s_.branches += known ? 0 : 1;
      auto after = nested(from, end);
      s_.branches -= known ? 0 : 1;
      return after;
    };
    CG_TRY(size_t next, run(close + 1, !known || *holds.number != 0));
    const bool leaves = std::exchange(s_.returned_early, false);
    const bool launched_then = s_.launched && !launched;
    HostScope then = std::exchange(s_.scope, before);
    const bool has_else = next < end && s_.t[next].is("else");
    bool leaves_else = false;
    if (has_else) {
      CG_TRY(next, run(next + 1, !known || *holds.number == 0));
      leaves_else = std::exchange(s_.returned_early, false);
    }
    if (known) {
      if (*holds.number != 0) s_.scope = std::move(then);
      s_.returned_early = *holds.number != 0 ? leaves : leaves_else;
      if (s_.returned_early && !s_.launched)
        return s_.context.error(at, "the launcher returns before the launch");
      return next;
    }
    if (s_.launched && !launched && (has_else || holds.kind == Kind::unreadable))
      return s_.context.error(at, "the launch depends on this condition");
    if (launched_then) {
      CG_CHECK(s_.demand(holds, at));
      s_.scope = std::move(then);
      return next;
    }
    if (leaves || leaves_else) {  // only the other branch reaches the launch
      const auto wanted = leaves_else ? Result<HostValue>(holds) : inverted(holds);
      if (wanted) CG_CHECK(s_.demand(*wanted, at));
      if (leaves_else) s_.scope = std::move(then);
      s_.returned_early = leaves && leaves_else;
      return next;
    }
    merge(s_, holds, then, at);
    return next;
  }

  // A branch of `if`, which is one statement.
  Result<size_t> nested(size_t from, size_t end) {
    if (++depth_ > kMostStatementDepth)
      return s_.context.error(s_.t[from], "the host code is too deep");
    auto next = statement(from, end);
    --depth_;
    return next;
  }

  // The index after a statement that does not run.
  Result<size_t> skip(size_t from, size_t end) {
    if (s_.t[from].mark('{')) return std::min(closing(s_.t, from, end) + 1, end);
    const bool has_body = s_.t[from].is("if") || s_.t[from].is("for") || s_.t[from].is("while") ||
                          s_.t[from].is("switch");
    if (!has_body) return std::min(s_.statement_end(from) + 1, end);
    size_t open = from + 1;
    while (open < end && !s_.t[open].mark('(')) ++open;
    const size_t after = std::min(closing(s_.t, open, end) + 1, end);
    if (after >= end) return end;
    if (++depth_ > kMostStatementDepth)
      return s_.context.error(s_.t[from], "the host code is too deep");
    CG_TRY(size_t next, skip(after, end));
    if (next + 1 < end && s_.t[next].is("else")) {
      CG_TRY(next, skip(next + 1, end));
    }
    --depth_;
    return next;
  }

  // AT_DISPATCH_...(x.scalar_type(), "name", [&] { ... }): the task says the type.
  Result<void> dispatch(TokenRange range) {
    const Token& at = s_.t[range.first];
    const bool calls = range.first + 1 < range.second && s_.t[range.first + 1].mark('(');
    const size_t close = calls ? closing(s_.t, range.first + 1, range.second) : range.second;
    const auto parts = comma_parts(s_.t, {range.first + 2, close});
    if (!calls || close >= range.second || parts.size() < 2)
      return s_.context.error(at, "cutegen cannot read this dispatch");
    size_t body = parts.back().first;
    while (body < parts.back().second && !s_.t[body].mark('{')) ++body;
    std::optional<DType> dtype;
    Error why = s_.context.error(at, "cutegen cannot read this dispatch").value();
    std::string type = "scalar_t";
    for (const TokenRange& part : comma_parts(s_.t, {range.first + 2, body})) {
      if (mentions(s_.t, part, "type")) {
        auto one = s_.value(part);
        if (one && one->kind == Kind::dtype) dtype = one->dtype;
        if (!one) why = one.error();
      }
      if (part.second == part.first + 1 && s_.t[part.first].kind == Token::Kind::word &&
          !s_.t[part.first].is("true") && !s_.scope.variables.contains(s_.t[part.first].text))
        type = s_.t[part.first].text;
    }
    if (!dtype || body >= parts.back().second) return fail(why);
    const auto saved = s_.scope.types;
    s_.scope.types[type] = {word_at(device_type(*dtype), at)};
    CG_CHECK(block({body + 1, closing(s_.t, body, parts.back().second)}));
    s_.returned_early = false;  // it only leaves the lambda
    s_.scope.types = saved;
    return {};
  }

  HostState s_;
  const std::string name_;
  const int line_;
  int depth_ = 0;
};

}  // namespace

std::vector<LauncherParameterText> launcher_parameters(const SourceOutline& outline,
                                                       const SourceFunction& function) {
  std::vector<LauncherParameterText> out;
  const std::vector<Token>& t = outline.tokens;
  for (auto [from, to] : comma_parts(t, {function.open + 1, function.close})) {
    for (size_t i = from; i < to; ++i)
      if (t[i].mark('=')) to = i;
    if (from >= to || (to == from + 1 && t[from].is("void"))) continue;
    LauncherParameterText one{.at = t[from]};
    const bool named = to > from + 1 && t[to - 1].kind == Token::Kind::word;
    if (named) one.name = t[to - 1].text;
    for (size_t i = from; i < to - (named ? 1 : 0); ++i) {
      const bool joined = i == from || is_mark(t[i], "::") || is_mark(t[i - 1], "::") ||
                          t[i].mark('*') || t[i].mark('&');
      one.type += (joined ? "" : " ") + t[i].text;
      one.is_tensor = one.is_tensor || t[i].is("Tensor");
      one.is_pointer = one.is_pointer || t[i].mark('*');
      one.is_stream = one.is_stream || t[i].is("cudaStream_t") || t[i].is("CUstream");
    }
    out.push_back(std::move(one));
  }
  return out;
}

Result<HostLaunch> read_launcher(HostContext& context, const LauncherQuery& query) {
  const SourceFunction& f = *query.function;
  auto body = expand_macros(context.outline, {f.body + 1, f.end > f.body + 1 ? f.end - 1 : f.end});
  const Token& at = context.outline.tokens[f.begin];
  if (!body) return context.error(at, "the launcher is too long");
  if (body->empty()) return context.error(at, "the launcher is empty");
  return LauncherReader(context, std::move(*body), query).run();
}

}  // namespace cutegen::eval
