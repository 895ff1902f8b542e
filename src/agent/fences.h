// SPDX-License-Identifier: Apache-2.0
// The fenced blocks and SEARCH/REPLACE blocks of a reply, in order, before their meaning is known.
//
// Contract: line ends are normalised first. A fence closes at a line of its own marks only; a fence
// that wraps other marked fences is looked through. `title` is the file name alone on the line
// above a fence. Anything may be given; what is not closed is said in `open_line`.
//
// Example: Fences f = read_fences(reply); for (const Fence& b : f.blocks) use(b.info, b.text);
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cutegen {

struct Fence {
  std::string kind;  // "file", "edit", "function", "plan", "code", "json", "diff", "other"
  std::string file;  // named in the first line, or empty
  std::string title;
  std::string text;  // lines joined by '\n', no last one
  int line = 1;
};
struct Fences {
  std::vector<Fence> blocks;
  std::vector<std::string> prose;  // the lines outside of fences
  int open_line = 0;               // of a fence that is never closed; 0: none
};
[[nodiscard]] Fences read_fences(const std::string& text);
// The file name that stands alone on the last line with text, or nothing.
[[nodiscard]] std::string title_above(const std::vector<std::string>& lines);

struct SearchBlock {
  std::string search, replace;
  int line = 1;
};
struct SearchBlocks {
  std::vector<SearchBlock> blocks;
  std::string fault;  // why the markers do not fit, or empty
};
// <<<<<<< SEARCH ... ======= ... >>>>>>> REPLACE
[[nodiscard]] SearchBlocks read_search_blocks(const std::string& text);

}  // namespace cutegen
