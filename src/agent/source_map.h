// SPDX-License-Identifier: Apache-2.0
// Finds the parts of a device source: code, comments, literals, directives, definitions, brackets.
//
// Contract: positions are bytes of the given text. All text is valid input; in text that is not
// C++, it finds few definitions. Definitions are those in namespaces (also within extern "C"), each
// with its template head and attributes, without the comment above it. Members are not listed.
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
// Replaces everything except code by blanks and keeps line ends.
std::string code_only(std::string_view text);

struct Definition {
  std::string name;
  bool is_type = false;  // struct, class, union, enum; else a function
  size_t begin = 0, size = 0;
  int line = 1;  // of `begin`
};
std::vector<Definition> definitions_in(std::string_view text);

// A bracket without its partner, or an #if without #endif.
struct Imbalance {
  int line = 1;
  std::string message;  // "'{' of line 12 is never closed"
};
std::optional<Imbalance> first_imbalance(std::string_view text);

int line_at(std::string_view text, size_t at);  // from 1
bool is_word_byte(char c);

}  // namespace cutegen::agent
