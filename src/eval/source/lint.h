// SPDX-License-Identifier: Apache-2.0
// Lint: checks the text of a kernel program for forbidden constructs before compilation.
//
// Contract: a program must not read files of the build machine, depend on the build time, keep
// state between launches, contain host code, or use textures, the device heap or launches from the
// device. The lint also finds uses of unavailable features. The lint only gives early messages; the
// sandbox gives the protection. A finding with `rule` gives the program the status `rejected`, any
// other finding gives `failed`. Places are "file:line:column".
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
// Checks all sources, and checks that a source declares each kernel of the plan with the same
// number of parameters.
std::vector<LintFinding> lint_program(const KernelProgram& program);

}  // namespace cutegen::eval
