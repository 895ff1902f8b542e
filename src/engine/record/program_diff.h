// SPDX-License-Identifier: Apache-2.0
// Computes unified diffs between the files (plan.json and the sources) of two kernel programs.
//
// Contract: returns one diff per file. line_diff() (agent/line_diff.h) computes it.
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
// The text of all files of the program, each after a line with its name.
std::string program_text(const KernelProgram& program);

}  // namespace cutegen::engine
