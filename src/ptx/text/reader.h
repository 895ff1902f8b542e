// SPDX-License-Identifier: Apache-2.0
// Reader: reads the tokens that a parser expects, and returns an error for any other token.
//
// Contract: for an unexpected token, a function returns a user error that names the PTX line. No
// function reads past the end of the text.
//
// Example: CG_TRY(std::string_view name, in.word("a label")); CG_CHECK(in.expect(";"));
#pragma once

#include <string>

#include "base/result.h"
#include "ptx/text/ast.h"
#include "ptx/text/lexer.h"

namespace cutegen::ptx {

struct Reader {
  explicit Reader(std::string_view text) : lex(text) {}
  tl::unexpected<Error> wrong(const std::string& wanted) const;
  Result<void> expect(std::string_view s);
  Result<std::string_view> word(const char* what);
  Result<int64_t> integer(const char* what);
  Result<void> skip_to_semicolon();
  Result<void> skip_braces();
  // Skips at most `most` numbers, separated by commas.
  Result<void> skip_list(int64_t most);
  std::string here() const;  // "ptx:12"

  Lexer lex;
};

// "ptx:12"
std::string at_line(int line);

}  // namespace cutegen::ptx
