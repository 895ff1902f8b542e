// SPDX-License-Identifier: Apache-2.0
// Known mistakes that a verdict's words or a source's text point to, as advice for its repair.
//
// Contract: hints are for failures; each has a sign in the message, the source, or both. Some
// faults are certain without compiling: certain_faults finds those in program and plan.
//
// Example: for (const std::string& hint : hints_for(program, verdict)) prompt += "- " + hint;
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/verdict.h"
#include "gpu/spec.h"

namespace cutegen {

[[nodiscard]] std::vector<std::string> hints_for(const KernelProgram& program,
                                                 const Verdict& verdict);
// Dynamic shared memory without bytes, bytes or threads beyond the device, ...
[[nodiscard]] std::vector<Error> certain_faults(const KernelProgram& program, const GpuSpec& gpu);

}  // namespace cutegen
