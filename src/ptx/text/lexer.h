// SPDX-License-Identifier: Apache-2.0
// Lexer: splits PTX text into words, numbers, strings and punctuation, with line numbers.
//
// Contract: tokens are views into the text. The lexer skips comments and never reads past the end.
// A word includes its dots and double colons ("ld.global.L2::128B.u32", "%tid.x", ".reg").
//
// Example: Lexer lex(text); if (lex.peek().is("{")) lex.next();
#pragma once

#include <cstddef>
#include <string_view>

namespace cutegen::ptx {

struct Token {
  enum class Kind : unsigned char { end, word, number, string, punct } kind = Kind::end;
  std::string_view text;
  int line = 0;
  size_t at = 0;  // offset in the text
  bool is(std::string_view s) const { return text == s && kind != Kind::string; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }
  const Token& peek() const { return token_; }
  Token next();
  // If the next token is `s`, consumes it and returns true.
  bool accept(std::string_view s);
  std::string_view text() const { return text_; }

 private:
  void advance();
  void skip_space();
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  Token token_;
};

}  // namespace cutegen::ptx
