// SPDX-License-Identifier: Apache-2.0
#include "eval/source/outline.h"

#include <algorithm>

#include "base/text.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostExpanded = 1 << 16;  // tokens
constexpr size_t kMostSteps = 1 << 20;
constexpr int kMostMacroDepth = 16;

constexpr std::string_view kOperators[] = {"<<<", "<<=", "<<", "<=", "==", "!=", "&&",
                                           "||",  "->",  "::", "++", "--", "+=", "-=",
                                           "*=",  "/=",  "%=", "&=", "|=", "^="};

// Combines adjacent punctuation into operators.
std::vector<Token> with_operators(std::vector<Token> tokens) {
  std::vector<Token> out;
  for (size_t i = 0; i < tokens.size();) {
    std::string run;
    for (size_t j = i; j < tokens.size() && run.size() < 3; ++j) {
      if (tokens[j].kind != Token::Kind::punctuation || tokens[j].text.size() != 1) break;
      if (j > i && tokens[j].begin != tokens[j - 1].end) break;
      run += tokens[j].text;
    }
    const auto found =
        std::ranges::find_if(kOperators, [&](std::string_view op) { return run.starts_with(op); });
    const size_t count = found == std::end(kOperators) ? 1 : found->size();
    Token token = std::move(tokens[i]);
    if (count > 1) token.text = *found;
    token.end = tokens[i + count - 1].end;
    out.push_back(std::move(token));
    i += count;
  }
  return out;
}

bool is_attribute(const Token& t) {
  return t.is("__launch_bounds__") || t.is("__attribute__") || t.is("__cluster_dims__") ||
         t.is("__maxnreg__") || t.is("__block_size__") || t.is("alignas") || t.is("__align__") ||
         t.is("decltype");
}

// Reads "#define NAME body" and "#define NAME(a, b) body".
std::optional<std::pair<std::string, SourceMacro>> macro_of(const Token& token) {
  constexpr std::string_view kDefine = "#define ";
  if (!token.text.starts_with(kDefine)) return std::nullopt;
  const std::string_view rest = std::string_view(token.text).substr(kDefine.size());
  std::vector<Token> words = with_operators(scan_source(rest));
  if (words.empty() || words[0].kind != Token::Kind::word) return std::nullopt;
  SourceMacro out;
  size_t body = 1;
  if (words.size() > 1 && words[1].mark('(') && words[0].end == words[1].begin) {
    out.is_function = true;
    const size_t close = closing(words, 1, words.size());
    for (const auto& [from, to] : comma_parts(words, {2, close}))
      out.parameters.push_back(to == from + 1 ? words[from].text : std::string("..."));
    body = std::min(close + 1, words.size());
  }
  out.body.assign(words.begin() + std::ptrdiff_t(body), words.end());
  return std::pair(words[0].text, std::move(out));
}

class Outliner {
 public:
  explicit Outliner(std::string_view source) { out_.tokens = with_operators(scan_source(source)); }

  SourceOutline run() {
    for (size_t i = 0; i < t().size();) {
      if (t()[i].kind == Token::Kind::directive) add_macro(t()[i]);
      const bool skipped =
          t()[i].kind == Token::Kind::directive || t()[i].mark('}') || t()[i].mark(';');
      if (t()[i].mark('}') && !scopes_.empty()) scopes_.pop_back();
      if (skipped)
        ++i;
      else if (const size_t inside = opened_scope(i))
        i = inside;
      else
        i = declaration(i);
    }
    return std::move(out_);
  }

 private:
  const std::vector<Token>& t() const { return out_.tokens; }

  void add_macro(const Token& token) {
    auto macro = macro_of(token);
    if (!macro) return;
    const auto [at, added] = out_.macros.insert(std::move(*macro));
    if (!added) at->second.defined_twice = true;
  }

  void add_constant(const std::string& name, TokenRange value) {
    const auto [at, added] = out_.constants.insert({name, {.value = value}});
    if (!added) at->second.defined_twice = true;
  }

  // The first token inside a namespace or an extern "C" block that begins here; 0 if none does.
  size_t opened_scope(size_t i) {
    const size_t n = t().size();
    if (i + 2 < n && t()[i].is("extern") && t()[i + 1].kind == Token::Kind::string &&
        t()[i + 2].mark('{')) {
      scopes_.emplace_back();
      return i + 3;
    }
    if (i < n && t()[i].is("inline")) ++i;
    if (i >= n || !t()[i].is("namespace")) return 0;
    std::string name;
    for (++i; i < n && (t()[i].kind == Token::Kind::word || is_mark(t()[i], "::")); ++i)
      name += t()[i].kind == Token::Kind::word ? "::" + t()[i].text : "";
    if (i >= n || !t()[i].mark('{')) return 0;
    scopes_.push_back(std::move(name));
    return i + 1;
  }

  size_t after_template(size_t i) const {
    if (i + 1 >= t().size() || !t()[i].is("template") || !t()[i + 1].mark('<')) return i;
    int depth = 0;
    for (++i; i < t().size(); ++i) {
      if (t()[i].mark('(')) i = closing(t(), i, t().size());
      if (i >= t().size() || t()[i].mark(';') || t()[i].mark('{')) return i;
      depth += t()[i].mark('<') ? 1 : t()[i].mark('>') ? -1 : 0;
      if (depth == 0) return i + 1;
    }
    return i;
  }

  // Reads one declaration. Returns the index after it.
  size_t declaration(size_t begin) {
    SourceFunction f;
    f.begin = begin;
    for (const std::string& scope : scopes_) f.scope += scope;
    f.templated = t()[begin].is("template");
    bool fixed = false;
    size_t equals = 0, i = after_template(begin);
    for (; i < t().size() && !t()[i].mark('}'); ++i) {
      const Token& token = t()[i];
      if (token.kind == Token::Kind::directive) add_macro(token);
      if (token.mark(';')) break;
      f.device = f.device || token.is("__device__");
      f.global = f.global || token.is("__global__");
      fixed = fixed || token.is("const") || token.is("constexpr");
      if (token.mark('=') && equals == 0) equals = i;
      const bool opens = token.mark('(') || token.mark('[') || token.mark('{');
      if (!opens) continue;
      const size_t close = closing(t(), i, t().size());
      if (token.mark('(') && f.open == 0 && equals == 0 && i > begin && !is_attribute(t()[i - 1]) &&
          t()[i - 1].kind == Token::Kind::word)
        f.open = i, f.close = close, f.name = t()[i - 1].text;
      if (token.mark('{') && f.open != 0 && equals == 0) {
        f.body = i;
        i = close;
        break;
      }
      i = close;
    }
    const size_t end = std::min(i + 1, t().size());
    f.end = end;
    if (fixed && equals > begin && f.open == 0 && t()[equals - 1].kind == Token::Kind::word)
      add_constant(t()[equals - 1].text, comma_parts(t(), {equals + 1, end - 1}).empty()
                                             ? TokenRange{equals + 1, equals + 1}
                                             : comma_parts(t(), {equals + 1, end - 1}).front());
    if (f.open != 0)
      out_.functions.push_back(std::move(f));
    else
      out_.others.emplace_back(begin, end);
    return end;
  }

  SourceOutline out_;
  std::vector<std::string> scopes_;  // open namespaces; an anonymous one is ""
};

class MacroExpander {
 public:
  explicit MacroExpander(const SourceOutline& outline) : outline_(outline) {}

  bool add(const std::vector<Token>& tokens, TokenRange range, const Token* place, int depth) {
    for (size_t i = range.first; i < range.second; ++i) {
      if (++steps_ > kMostSteps) return false;
      const SourceMacro* macro = depth < kMostMacroDepth ? find(tokens[i]) : nullptr;
      const Token* at = place ? place : &tokens[i];
      if (macro && !macro->is_function) {
        if (!add(macro->body, {0, macro->body.size()}, at, depth + 1)) return false;
        continue;
      }
      const size_t open = i + 1;
      if (macro && open < range.second && tokens[open].mark('(')) {
        const size_t close = closing(tokens, open, range.second);
        const auto arguments = comma_parts(tokens, {open + 1, close});
        if (close < range.second && arguments.size() == macro->parameters.size()) {
          const std::vector<Token> body = filled(*macro, tokens, arguments);
          if (!add(body, {0, body.size()}, at, depth + 1)) return false;
          i = close;
          continue;
        }
      }
      if (out_.size() >= kMostExpanded) return false;
      out_.push_back(tokens[i]);
      if (place) out_.back().line = place->line, out_.back().column = place->column;
    }
    return true;
  }

  std::vector<Token> take() { return std::move(out_); }

 private:
  const SourceMacro* find(const Token& token) const {
    if (token.kind != Token::Kind::word || token.text.find("CHECK") != std::string::npos ||
        token.text.find("DISPATCH") != std::string::npos)
      return nullptr;
    const auto at = outline_.macros.find(token.text);
    return at == outline_.macros.end() || at->second.defined_twice ? nullptr : &at->second;
  }

  static std::vector<Token> filled(const SourceMacro& macro, const std::vector<Token>& tokens,
                                   const std::vector<TokenRange>& arguments) {
    std::vector<Token> out;
    for (const Token& token : macro.body) {
      const auto at = std::ranges::find(macro.parameters, token.text);
      if (token.kind != Token::Kind::word || at == macro.parameters.end()) {
        out.push_back(token);
      } else {
        const auto& [from, to] = arguments[size_t(at - macro.parameters.begin())];
        out.insert(out.end(), tokens.begin() + std::ptrdiff_t(from),
                   tokens.begin() + std::ptrdiff_t(to));
      }
      if (out.size() > kMostExpanded) break;
    }
    return out;
  }

  const SourceOutline& outline_;
  size_t steps_ = 0;  // macros that expand to nothing cost time, too
  std::vector<Token> out_;
};

}  // namespace

std::vector<const SourceFunction*> SourceOutline::defined(const std::string& name) const {
  std::vector<const SourceFunction*> out;
  for (const SourceFunction& f : functions)
    if (f.name == name && f.body != 0) out.push_back(&f);
  return out;
}

SourceOutline outline_of(std::string_view source) {
  return Outliner(source).run();
}

bool is_mark(const Token& token, std::string_view text) {
  return token.kind == Token::Kind::punctuation && token.text == text;
}

size_t closing(const std::vector<Token>& tokens, size_t open, size_t end) {
  int depth = 0;
  for (size_t i = open; i < end; ++i) {
    const Token& t = tokens[i];
    if (t.mark('(') || t.mark('[') || t.mark('{')) ++depth;
    if ((t.mark(')') || t.mark(']') || t.mark('}')) && --depth == 0) return i;
  }
  return end;
}

std::vector<TokenRange> comma_parts(const std::vector<Token>& tokens, TokenRange range) {
  std::vector<TokenRange> out;
  size_t begin = range.first;
  for (size_t i = range.first; i < range.second; ++i) {
    const Token& t = tokens[i];
    if (t.mark('(') || t.mark('[') || t.mark('{')) i = closing(tokens, i, range.second);
    if (i < range.second && tokens[i].mark(',')) {
      out.emplace_back(begin, i);
      begin = i + 1;
    }
  }
  if (!out.empty() || begin < range.second) out.emplace_back(begin, range.second);
  return out;
}

std::optional<std::vector<Token>> expand_macros(const SourceOutline& outline, TokenRange range) {
  MacroExpander expander(outline);
  if (!expander.add(outline.tokens, range, nullptr, 0)) return std::nullopt;
  return expander.take();
}

}  // namespace cutegen::eval
