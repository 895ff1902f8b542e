// SPDX-License-Identifier: Apache-2.0
// Where a source can be cut in two so that the pieces, read one after the other through #include,
// are the same translation unit.
//
// Contract: a cut lies at the start of a line, after `;`, `{` or `}`, outside comments, literals,
// directives, parentheses and #if groups. Whether an offset is a cut depends on the text before it
// alone, so sources that begin alike have the cuts of that beginning in common. A text that can
// tell pieces from a whole (its own #line, __INCLUDE_LEVEL__, __has_include, ...), or that this
// scan is not sure to read as the compiler does, is not `plain` and must not be cut.
//
// Example: Cuts c = find_cuts(text, body); if (c.plain) text.substr(c.at[0].offset) ...
#pragma once

#include <string>
#include <vector>

namespace cutegen::toolchain {

struct Cut {
  size_t offset = 0;
  int line = 0;  // of the source, from 1
};

struct Cuts {
  bool plain = true;
  std::vector<Cut> at;
};

// `text` as full_source() makes it: #define lines and a #line, then the source, from `body` on.
[[nodiscard]] Cuts find_cuts(const std::string& text, size_t body);

}  // namespace cutegen::toolchain
