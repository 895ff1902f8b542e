// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/reader.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cutegen::ptx {

std::string at_line(int line) {
  return fmt::format("ptx:{}", line);
}

std::string Reader::here() const {
  return at_line(lex.peek().line);
}

tl::unexpected<Error> Reader::wrong(const std::string& wanted) const {
  const Token& t = lex.peek();
  std::string got = t.kind == Token::Kind::end ? "the end of the text"
                                               : "'" + sanitize(t.text.substr(0, 60), 80) + "'";
  return user_error(fmt::format("expected {}, found {}", wanted, got), at_line(t.line),
                    "give the PTX text as the compiler wrote it");
}

Result<void> Reader::expect(std::string_view s) {
  if (lex.accept(s)) return {};
  return wrong("'" + std::string(s) + "'");
}

Result<std::string_view> Reader::word(const char* what) {
  if (lex.peek().kind != Token::Kind::word) return wrong(what);
  return lex.next().text;
}

Result<int64_t> Reader::integer(const char* what) {
  const bool negative = lex.accept("-");
  if (lex.peek().kind != Token::Kind::number) return wrong(what);
  auto n = parse_number(lex.peek().text);
  if (!n || n->kind != Operand::Kind::integer) return wrong(what);
  lex.next();
  return negative ? int64_t(-uint64_t(n->value)) : n->value;
}

Result<void> Reader::skip_to_semicolon() {
  while (!lex.peek().is(";")) {
    if (lex.peek().kind == Token::Kind::end) return wrong("';'");
    lex.next();
  }
  lex.next();
  return {};
}

Result<void> Reader::skip_braces() {
  CG_CHECK(expect("{"));
  for (int64_t open = 1; open > 0; lex.next()) {
    const Token& t = lex.peek();
    if (t.kind == Token::Kind::end) return wrong("'}'");
    if (t.is("{")) ++open;
    if (t.is("}")) --open;
  }
  return {};
}

Result<void> Reader::skip_list(int64_t most) {
  for (int64_t i = 0; i < most; ++i) {
    CG_CHECK(integer("a number"));
    if (!lex.accept(",")) return {};
  }
  return {};
}

}  // namespace cutegen::ptx
