// SPDX-License-Identifier: Apache-2.0
// Reads the fenced blocks and SEARCH/REPLACE blocks of a reply, in order, without interpreting
// them.
//
// Contract: accepts any text. Normalises line ends first. A fence ends only at a line with the same
// marks. If a fence contains other marked fences, only the inner ones count. `title` is a file name
// on a line of its own above a fence. `open_line` reports a fence that never closes.
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
  std::string file;  // named in the first line, or empty
  std::string title;
  std::string text;  // lines joined by '\n', without one at the end
  int line = 1;
};
struct Fences {
  std::vector<Fence> blocks;
  std::vector<std::string> prose;  // the lines outside fences
  int open_line = 0;               // line of a fence that never closes; 0: all close
};
Fences read_fences(const std::string& text);
// The file name, if the last non-empty line is only a file name; else empty.
std::string title_above(const std::vector<std::string>& lines);

struct SearchBlock {
  std::string search, replace;
  int line = 1;
};
struct SearchBlocks {
  std::vector<SearchBlock> blocks;
  std::string fault;  // why the markers do not match, or empty
};
// <<<<<<< SEARCH ... ======= ... >>>>>>> REPLACE
SearchBlocks read_search_blocks(const std::string& text);

}  // namespace cutegen::agent
