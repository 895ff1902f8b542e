// SPDX-License-Identifier: Apache-2.0
#include "eval/source/source_scan.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace cutegen::eval {
namespace {

bool word_start(char c) {
  return std::isalpha(uint8_t(c)) || c == '_' || c == '$';
}
bool word_part(char c) {
  return word_start(c) || std::isdigit(uint8_t(c));
}

class Scanner {
 public:
  explicit Scanner(std::string_view source) : text_(source) {}

  std::vector<Token> run() {
    bool line_start = true;
    while (skip_blank(line_start)) {
      Token t{.kind = Token::Kind::punctuation, .text = {}, .line = line_, .column = column_};
      t.begin = at_;
      if (line_start && (peek() == '#' || (peek() == '%' && peek(1) == ':'))) {
        read_directive(t);
      } else if (peek() == '"') {
        read_quoted(t, '"');
      } else if (peek() == '\'') {
        read_quoted(t, '\'');
      } else if (word_start(peek())) {
        read_word(t);
      } else if (std::isdigit(uint8_t(peek()))) {
        read_number(t);
      } else {
        t.text = take();
      }
      line_start = false;
      t.end = at_;
      out_.push_back(std::move(t));
    }
    return std::move(out_);
  }

 private:
  // Skips backslash-newline, which the compiler removes everywhere except in raw strings.
  void splice() {
    for (;;) {
      size_t at = at_;
      if (at >= text_.size() || text_[at] != '\\') return;
      ++at;
      if (at < text_.size() && text_[at] == '\r') ++at;
      if (at >= text_.size() || text_[at] != '\n') return;
      at_ = at + 1;
      ++line_;
      column_ = 1;
    }
  }
  bool end() {
    splice();
    return at_ >= text_.size();
  }
  char peek(size_t ahead = 0) {
    if (ahead == 0) splice();
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take() {
    splice();
    if (at_ >= text_.size()) return '\0';
    char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
    return c;
  }
  // Stops before a newline if `within_line`. Returns whether it skipped a comment.
  bool skip_comment(bool within_line) {
    if (peek() != '/') return false;
    if (peek(1) == '/') {
      while (!end() && peek() != '\n') take();
      return true;
    }
    if (peek(1) != '*') return false;
    take();
    take();
    while (!end() && !(peek() == '*' && peek(1) == '/')) take();
    take();
    take();
    (void)within_line;
    return true;
  }
  bool skip_blank(bool& line_start) {
    while (!end()) {
      if (skip_comment(false)) continue;
      if (!std::isspace(uint8_t(peek()))) return true;
      if (take() == '\n') line_start = true;
    }
    return false;
  }
  // Reads the whole logical line, collapses blanks and drops comments.
  void read_directive(Token& t) {
    t.kind = Token::Kind::directive;
    if (take() == '%') take();
    t.text = "#";
    while (!end() && peek() != '\n') {
      if (skip_comment(true)) {
        t.text += ' ';
        continue;
      }
      char c = take();
      bool blank = std::isspace(uint8_t(c));
      if (blank && (t.text == "#" || t.text.back() == ' ')) continue;
      t.text += blank ? ' ' : c;
    }
    while (t.text.back() == ' ') t.text.pop_back();
  }
  void read_quoted(Token& t, char quote) {
    t.kind = quote == '"' ? Token::Kind::string : Token::Kind::character;
    take();
    while (!end() && peek() != quote && peek() != '\n') {
      if (peek() == '\\') t.text += take();
      t.text += take();
    }
    if (!end() && peek() == quote) take();
  }
  void read_raw(Token& t) {
    t.kind = Token::Kind::string;
    size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) return;
    std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    size_t stop = text_.find(close, open);
    size_t last = stop == std::string_view::npos ? text_.size() : stop;
    t.text = text_.substr(open + 1, last - open - 1);
    for (char c : text_.substr(at_, last - at_)) line_ += c == '\n';
    at_ = std::min(text_.size(), last + close.size());
  }
  void read_word(Token& t) {
    t.kind = Token::Kind::word;
    while (!end() && word_part(peek())) t.text += take();
    bool prefix = t.text == "L" || t.text == "u8" || t.text == "u" || t.text == "U" ||
                  t.text == "R" || t.text == "LR" || t.text == "u8R" || t.text == "uR" ||
                  t.text == "UR";
    if (!prefix || at_ >= text_.size() || text_[at_] != '"') return;
    bool raw = t.text.back() == 'R';
    t.text.clear();
    if (raw)
      read_raw(t);
    else
      read_quoted(t, '"');
  }
  void read_number(Token& t) {
    t.kind = Token::Kind::number;
    while (!end() && (word_part(peek()) || peek() == '.' || (peek() == '\'' && word_part(peek(1)))))
      t.text += take();
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, column_ = 1;
  std::vector<Token> out_;
};

size_t matching(const std::vector<Token>& t, size_t open, char left, char right) {
  int depth = 0;
  for (size_t i = open; i < t.size(); ++i) {
    if (t[i].mark(left)) ++depth;
    if (t[i].mark(right) && --depth == 0) return i;
  }
  return t.size();
}

std::vector<std::string> parameters(const std::vector<Token>& t, size_t open, size_t close) {
  std::vector<std::string> out;
  int depth = 0;
  std::string current;
  for (size_t i = open + 1; i < close; ++i) {
    if (t[i].mark('(') || t[i].mark('<') || t[i].mark('[')) ++depth;
    if (t[i].mark(')') || t[i].mark('>') || t[i].mark(']')) --depth;
    if (t[i].mark(',') && depth == 0) {
      out.push_back(std::exchange(current, {}));
      continue;
    }
    current += (current.empty() ? "" : " ") + t[i].text;
  }
  if (!current.empty() && !(out.empty() && current == "void")) out.push_back(current);
  return out;
}

// Finds what precedes `__global__` in its declaration.
class Declarations {
 public:
  // Reads token i. Call it for every token in order.
  void read(const std::vector<Token>& t, size_t i) {
    const Token& token = t[i];
    const bool opens = token.mark('{');
    if (opens) blocks_.push_back(is_extern_c(t, i));
    if (token.mark('}') && !blocks_.empty()) blocks_.pop_back();
    if (opens || token.mark('}') || token.mark(';') || token.kind == Token::Kind::directive)
      begin_ = i + 1;
  }
  void describe(const std::vector<Token>& t, size_t global, Signature& out) const {
    out.external = std::ranges::find(blocks_, true) != blocks_.end();
    for (size_t i = begin_; i < global; ++i) {
      out.templated = out.templated || t[i].is("template");
      out.external = out.external || is_extern_c(t, i + 2);
    }
    if (begin_ == global) out.global_line = t[global].line, out.global_column = t[global].column;
  }

 private:
  // Whether extern "C" stands before token i.
  static bool is_extern_c(const std::vector<Token>& t, size_t i) {
    return i >= 2 && i - 1 < t.size() && t[i - 2].is("extern") &&
           t[i - 1].kind == Token::Kind::string && t[i - 1].text == "C";
  }

  size_t begin_ = 0;          // the first token of the declaration
  std::vector<bool> blocks_;  // for each open brace: whether it is extern "C"
};

}  // namespace

std::vector<Token> scan_source(std::string_view source) {
  return Scanner(source).run();
}

std::vector<Signature> kernel_signatures(const std::vector<Token>& t) {
  std::vector<Signature> out;
  Declarations declarations;
  for (size_t i = 0; i < t.size(); ++i) {
    declarations.read(t, i);
    if (!t[i].is("__global__")) continue;
    // The name is the last word before the first parenthesis that does not belong to an attribute.
    size_t at = i + 1;
    for (; at < t.size() && !t[at].mark('{') && !t[at].mark(';'); ++at) {
      bool attribute = t[at].is("__launch_bounds__") || t[at].is("__attribute__") ||
                       t[at].is("__cluster_dims__") || t[at].is("__maxnreg__") ||
                       t[at].is("__block_size__") || t[at].is("alignas") || t[at].is("__align__");
      if (attribute && at + 1 < t.size() && t[at + 1].mark('('))
        at = matching(t, at + 1, '(', ')');
      else if (t[at].kind == Token::Kind::word && at + 1 < t.size() && t[at + 1].mark('('))
        break;
    }
    if (at >= t.size() || t[at].kind != Token::Kind::word) continue;
    size_t close = matching(t, at + 1, '(', ')');
    out.push_back({.name = t[at].text,
                   .parameters = parameters(t, at + 1, close),
                   .line = t[at].line,
                   .column = t[at].column});
    declarations.describe(t, i, out.back());
    i = close;
  }
  return out;
}

}  // namespace cutegen::eval
