// SPDX-License-Identifier: Apache-2.0
// Finds the places where a source can be cut into pieces that, included one after another, form the
// same translation unit.
//
// Contract: a cut is at the start of a line, after `;`, `{` or `}`, outside comments, literals,
// directives, parentheses and #if groups. Whether an offset is a cut depends only on the text
// before it, so sources with the same beginning have the same cuts there. A text is not `plain`,
// and must not be cut, if it can distinguish pieces from the whole (its own #line,
// __INCLUDE_LEVEL__, __has_include, ...) or if this scan may read it differently from the compiler.
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

// text: the result of full_source(), that is #define lines, a #line, and from `body` on the source.
Cuts find_cuts(const std::string& text, size_t body);

}  // namespace cutegen::toolchain
