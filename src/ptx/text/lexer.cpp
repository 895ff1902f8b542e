// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/lexer.h"

namespace cutegen::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}

}  // namespace

Token Lexer::next() {
  Token t = token_;
  advance();
  return t;
}

bool Lexer::accept(std::string_view s) {
  if (!token_.is(s)) return false;
  advance();
  return true;
}

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '\n') {
      ++line_, ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && text_.substr(at_, 2) == "/*") {
      size_t end = text_.find("*/", at_ + 2);
      size_t stop = end == std::string_view::npos ? text_.size() : end + 2;
      for (; at_ < stop; ++at_) line_ += text_[at_] == '\n';
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_space();
  token_ = Token{.kind = Token::Kind::end, .text = {}, .line = line_, .at = at_};
  if (at_ >= text_.size()) return;
  const size_t begin = at_;
  const char c = text_[at_];
  const bool point_number = c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
  if (is_letter(c) || (c == '.' && !point_number)) {
    token_.kind = Token::Kind::word;
    for (++at_; at_ < text_.size(); ++at_) {
      if (is_word(text_[at_])) continue;
      if (text_[at_] == ':' && at_ + 2 < text_.size() && text_[at_ + 1] == ':' &&
          is_word(text_[at_ + 2])) {
        ++at_;
        continue;
      }
      break;
    }
  } else if (is_digit(c) || point_number) {
    token_.kind = Token::Kind::number;
    for (++at_; at_ < text_.size(); ++at_) {
      char p = text_[at_ - 1], n = text_[at_];
      bool exponent = (n == '+' || n == '-') && (p == 'e' || p == 'E') && text_[begin] != '0';
      if (!is_word(n) && !exponent) break;
    }
  } else if (c == '"') {
    token_.kind = Token::Kind::string;
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    }
    if (at_ < text_.size()) ++at_;
  } else {
    token_.kind = Token::Kind::punct;
    ++at_;
  }
  token_.text = text_.substr(begin, at_ - begin);
}

}  // namespace cutegen::ptx
