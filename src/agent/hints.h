// SPDX-License-Identifier: Apache-2.0
// Recognises common mistakes in a program by its verdict, and returns advice for the repair.
//
// Contract: each hint belongs to one kind of failure: a compiler error, a fault that the device
// reports, or wrong values. Some hints also depend on the program's source. Words in an unrelated
// part of the verdict never trigger a hint. The function certain_faults() finds faults that prevent
// a program from running, and that show even before compilation.
//
// Example: for (const std::string& hint : hints_for(program, verdict)) prompt += "- " + hint;
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/verdict.h"
#include "gpu/spec.h"

namespace cutegen::agent {

std::vector<std::string> hints_for(const KernelProgram& program, const Verdict& verdict);
size_t known_hints();  // number of hints; a test checks that every hint has a test
// Finds faults such as dynamic shared memory for which the plan requests no bytes, or a block with
// more shared memory or threads than the GPU permits.
std::vector<Error> certain_faults(const KernelProgram& program, const GpuSpec& gpu);

}  // namespace cutegen::agent
