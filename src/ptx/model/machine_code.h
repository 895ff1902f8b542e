// SPDX-License-Identifier: Apache-2.0
// Corrects the estimated number of a kernel's machine instructions, if the kernel's machine code is
// known.
//
// Contract: machine_factors() returns, for each PTX instruction, the machine instructions of its
// part of the kernel divided by the estimate from the PTX (Usage::issue). A part is an innermost
// loop, or the code outside of such loops. Marks are instructions that PTX and machine code both
// have, such as loads and barriers (gpu/code_shape.h). The assembler may have unrolled a loop.
// Therefore, if a part of the PTX and a part of the machine code have the same proportions of
// marks, machine_factors() compares their instructions per mark. If no part of the machine code has
// the proportions of a part of the PTX, or the part has no marks, the factor is 1. Factors lie
// between kLeastFactor and kMostFactor.
//
// Example: auto f = machine_factors(program, shape); slots = runs * usage.issue * f[pc];
#pragma once

#include <vector>

#include "gpu/code_shape.h"
#include "ptx/decode/program.h"

namespace cutegen::ptx {

inline constexpr double kLeastFactor = 0.25, kMostFactor = 4;

// Returns the parts of a kernel's PTX, with estimated numbers of machine instructions.
CodeShape shape_of(const Program& program);
std::vector<double> machine_factors(const Program& program, const CodeShape& machine);

}  // namespace cutegen::ptx
