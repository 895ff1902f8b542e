// SPDX-License-Identifier: Apache-2.0
// Differences of two kernel programs, for people: unified diffs of plan.json and the sources.
//
// Contract: the differences of line_diff (agent/line_diff.h), file by file.
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
// Every file of the program, each under its name.
std::string program_text(const KernelProgram& program);

}  // namespace cutegen::engine
