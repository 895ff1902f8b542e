// SPDX-License-Identifier: Apache-2.0
// Splits a model's reply into fenced blocks, and a fenced block into SEARCH/REPLACE blocks. These
// functions do not interpret the content of blocks.
//
// Contract: read_fences() accepts any text, and replaces all line ends by '\n' before it looks for
// fences. A fence that began with ``` ends only at a line of at least as many backticks. If a fence
// only encloses fences that name a format (such as "file NAME"), the result has only the inner
// fences. `title` is a file name on a separate line above a fence. `open_line` is the line of a
// fence that is not closed.
//
// Example: Fences f = read_fences(reply); for (const Fence& b : f.blocks) use(b.info, b.text);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/names.h"

namespace cutegen::agent {

enum class FenceKind { file, edit, function, plan, code, json, diff, other };
Names<FenceKind> enum_names(FenceKind);

struct Fence {
  FenceKind kind = FenceKind::other;
  std::string file;  // file name in the fence's first line, or empty
  std::string title;
  std::string text;  // lines joined by '\n', without a '\n' at the end
  int line = 1;
};
struct Fences {
  std::vector<Fence> blocks;
  std::vector<std::string> prose;  // the reply's lines outside fences
  int open_line = 0;               // line of a fence that is not closed; 0 if all are closed
};
Fences read_fences(const std::string& text);
// Returns the last non-empty line if this line is only a file name; otherwise an empty text.
std::string title_above(const std::vector<std::string>& lines);

struct SearchBlock {
  std::string search, replace;
  int line = 1;
};
struct SearchBlocks {
  std::vector<SearchBlock> blocks;
  std::string fault;  // the error if the markers do not match, or empty
};
// Reads blocks of the form <<<<<<< SEARCH ... ======= ... >>>>>>> REPLACE.
SearchBlocks read_search_blocks(const std::string& text);

}  // namespace cutegen::agent
