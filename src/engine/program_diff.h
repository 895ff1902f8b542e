// SPDX-License-Identifier: Apache-2.0
// Differences of two kernel programs, for people: unified diffs of plan.json and the sources.
//
// Contract: line_diff gives the shortest edit for texts of moderate size and a whole replacement
// beyond that; it never takes longer than a fraction of a second.
//
// Example: fmt::print("{}", program_diff(parent, child));
#pragma once

#include <string>
#include <vector>

#include "core/program.h"

namespace cutegen {

struct DiffLine {
  char mark = ' ';  // ' ' same, '-' only before, '+' only after, '@' lines were left out
  std::string text;
};

// With `context` equal lines around each change; empty when the texts are equal.
[[nodiscard]] std::vector<DiffLine> line_diff(const std::string& before, const std::string& after,
                                              size_t context = 3);

struct FileDiff {
  std::string name;
  std::vector<DiffLine> lines;
};
[[nodiscard]] std::vector<FileDiff> program_diffs(const KernelProgram& before,
                                                  const KernelProgram& after);
[[nodiscard]] std::string program_diff(const KernelProgram& before, const KernelProgram& after);
// Every file of the program, each under its name.
[[nodiscard]] std::string program_text(const KernelProgram& program);

}  // namespace cutegen
