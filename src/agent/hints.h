// SPDX-License-Identifier: Apache-2.0
// Recognises known mistakes in a verdict and gives advice for the repair.
//
// Contract: each hint answers one kind of failure: errors of the compiler, a finding of the device,
// or wrong values. The source may narrow it; words elsewhere in the message do not count.
// certain_faults() finds faults of program and plan that are certain without compiling.
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
size_t known_hints();  // so that tests cover all of them
// Dynamic shared memory without bytes, more bytes or threads than the device has, ...
std::vector<Error> certain_faults(const KernelProgram& program, const GpuSpec& gpu);

}  // namespace cutegen::agent
