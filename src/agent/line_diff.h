// SPDX-License-Identifier: Apache-2.0
// Finds the lines that differ between two texts.
//
// Contract: for texts of moderate size, line_diff() returns the shortest edit. For larger texts, it
// marks everything between the first and the last difference as replaced, because the shortest edit
// would take too long.
//
// Example: for (const DiffLine& l : line_diff(before, after)) out += l.mark + l.text + "\n";
#pragma once

#include <string>
#include <vector>

namespace cutegen::agent {

struct DiffLine {
  // ' ': in both texts; '-': only in `before`; '+': only in `after`; '@': lines are omitted here
  char mark = ' ';
  std::string text;
};

// Returns each change with `context` equal lines around it. Returns nothing for equal texts.
std::vector<DiffLine> line_diff(const std::string& before, const std::string& after,
                                size_t context = 3);

// One change: lines [before, before_end) of the old text became lines [after, after_end) of the new
// text, counted from 0.
struct Hunk {
  size_t before = 0, before_end = 0, after = 0, after_end = 0;
};
std::vector<Hunk> hunks_of(const std::string& before, const std::string& after);

}  // namespace cutegen::agent
