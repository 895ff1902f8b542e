// SPDX-License-Identifier: Apache-2.0
// The policy of kernel programs, checked on their text before anything is compiled.
//
// Contract: finds what a program must not do (read files of the build machine, depend on the time
// of the build, keep state between launches, host code, textures, device heap, launches from the
// device) and what is not available. The lint only explains early; the sandbox protects. If a
// finding has `rule` set, the program is `rejected`; with any other finding it has `failed`. Places
// are "file:line:column".
//
// Example: for (const LintFinding& f : lint_program(program)) fmt::print("{}\n", f.error.text());
#pragma once

#include <vector>

#include "core/program.h"
#include "eval/source/source_scan.h"

namespace cutegen::eval {

struct LintFinding {
  bool rule = false;
  Error error;
};

std::vector<LintFinding> lint_source(const std::string& name, const std::string& text);
// Checks all sources, and that the plan's kernels match the declared ones in name and argument
// count.
std::vector<LintFinding> lint_program(const KernelProgram& program);

}  // namespace cutegen::eval
