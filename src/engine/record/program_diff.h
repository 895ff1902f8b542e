// SPDX-License-Identifier: Apache-2.0
// Computes unified diffs between the files (plan.json and the sources) of two kernel programs.
//
// Contract: program_diffs() returns one diff per file, which line_diff() (agent/line_diff.h)
// computes.
//
// Example: fmt::print("{}", program_diff(parent, child));
#pragma once

#include <string>
#include <vector>

#include "agent/line_diff.h"
#include "core/program.h"

namespace cutegen::engine {

struct FileDiff {
  std::string name;
  std::vector<agent::DiffLine> lines;
};
std::vector<FileDiff> program_diffs(const KernelProgram& before, const KernelProgram& after);
std::string program_diff(const KernelProgram& before, const KernelProgram& after);
// Returns the texts of the program's files, each after a line with the file's name.
std::string program_text(const KernelProgram& program);

}  // namespace cutegen::engine
