// SPDX-License-Identifier: Apache-2.0
// Recognises known mistakes in a verdict and gives advice for the repair.
//
// Contract: each hint answers one kind of failure: compiler errors, a finding of the device, or
// wrong values. Some hints also look at the source. Words elsewhere in the message do not trigger a
// hint. certain_faults() finds faults of program and plan that are certain even without compiling.
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
size_t known_hints();  // for tests, which have to cover all hints
// Finds errors such as dynamic shared memory without bytes, or more bytes or threads than the
// device has.
std::vector<Error> certain_faults(const KernelProgram& program, const GpuSpec& gpu);

}  // namespace cutegen::agent
