// SPDX-License-Identifier: Apache-2.0
// Finds the positions at which a source can be cut into pieces, so that a compiler that includes
// the pieces one after another sees the same translation unit as in the uncut source.
//
// Contract: a cut is at the start of a line, after `;`, `{` or `}`, outside comments, literals,
// directives, parentheses and #if groups. Whether an offset is a cut depends only on the text
// before the offset, so sources with the same beginning have the same cuts in their beginning.
// `plain` is false if a caller must not cut the text: the text could detect the cuts (by its own
// #line, __INCLUDE_LEVEL__, __has_include, ...), or the compiler may parse the text differently
// from find_cuts().
//
// Example: Cuts c = find_cuts(text, body); if (c.plain) text.substr(c.at[0].offset) ...
#pragma once

#include <string>
#include <vector>

namespace cutegen::toolchain {

struct Cut {
  size_t offset = 0;
  int line = 0;  // line number in the source, from 1
};

struct Cuts {
  bool plain = true;
  std::vector<Cut> at;
};

// `text` is the result of full_source(): #define lines, a #line, and then the source, which begins
// at the offset `body`.
Cuts find_cuts(const std::string& text, size_t body);

}  // namespace cutegen::toolchain
