// SPDX-License-Identifier: Apache-2.0
// Lint for the dialect cute-strict: finds code that does by hand what CuTe does.
//
// Contract: lint_strict() finds inline assembly with matrix instructions (mma, wgmma, ldmatrix,
// stmatrix), and swizzles that the source computes with the operator ^. Every finding names the
// component of CuTe to use instead. The findings break no rule of the evaluator (LintFinding::rule
// is false). An exclusive or in a hash or in the lane of a shuffle does not count as a swizzle.
//
// Example: for (const LintFinding& f : lint_strict("kernel.cu", scan_source(text))) ...
#pragma once

#include <string>
#include <vector>

#include "eval/source/lint.h"

namespace cutegen::eval {

std::vector<LintFinding> lint_strict(const std::string& name, const std::vector<Token>& tokens);

}  // namespace cutegen::eval
