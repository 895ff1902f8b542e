// SPDX-License-Identifier: Apache-2.0
// Recognises known mistakes in a verdict or a source and gives advice for the repair.
//
// Contract: hints are for failures. Each has a sign in the message, the source, or both.
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
// Dynamic shared memory without bytes, more bytes or threads than the device has, ...
std::vector<Error> certain_faults(const KernelProgram& program, const GpuSpec& gpu);

}  // namespace cutegen::agent
