// SPDX-License-Identifier: Apache-2.0
// Shows people how two kernel programs differ: unified diffs of plan.json and the sources.
//
// Contract: one diff per file, made by line_diff (agent/line_diff.h).
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
// All files of the program, each under its name.
std::string program_text(const KernelProgram& program);

}  // namespace cutegen::engine
