// SPDX-License-Identifier: Apache-2.0
// Analyses the text of a device source: finds comments, literals, directives, definitions and
// unbalanced brackets.
//
// Contract: positions are byte offsets in the given text. The functions accept any text. The
// function definitions_in() lists the definitions at namespace scope (also within extern "C"), but
// not members of types. A definition includes its template head and attributes, but not the comment
// above it.
//
// Example: for (const Definition& d : definitions_in(text)) use(text.substr(d.begin, d.size));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cutegen::agent {

enum class ByteKind : uint8_t { code, comment, literal, directive };
std::vector<ByteKind> map_source(std::string_view text);
// Replaces comments, literals and directives by blanks, and keeps line ends.
std::string code_only(std::string_view text);

struct Definition {
  std::string name;
  bool is_type = false;  // true: a struct, class, union or enum; false: a function
  size_t begin = 0, size = 0;
  int line = 1;  // of `begin`
};
std::vector<Definition> definitions_in(std::string_view text);

// A bracket without the matching bracket, or an #if without #endif.
struct Imbalance {
  int line = 1;
  std::string message;  // such as "'{' of line 12 is never closed"
};
std::optional<Imbalance> first_imbalance(std::string_view text);

int line_at(std::string_view text, size_t at);  // from 1
bool is_word_byte(char c);

}  // namespace cutegen::agent
