// SPDX-License-Identifier: Apache-2.0
// Corrects the estimated number of machine instructions of a kernel by its machine code.
//
// Contract: machine_factors() returns, for each PTX instruction, the machine instructions of its
// part of the kernel divided by the estimate from the PTX (Usage::issue). A part is an innermost
// loop, or the code outside of such loops. Marks are instructions that PTX and machine code both
// have, such as loads and barriers (gpu/code_shape.h). The assembler may have unrolled a loop, so
// parts with the same proportions of marks are compared per mark. If no part of the machine code
// has the proportions of a part of the PTX, or the part has no marks, the factor is 1. Factors lie
// between kLeastFactor and kMostFactor.
//
// Example: auto f = machine_factors(program, shape); slots = runs * usage.issue * f[pc];
#pragma once

#include <vector>

#include "gpu/code_shape.h"
#include "ptx/decode/program.h"

namespace cutegen::ptx {

inline constexpr double kLeastFactor = 0.25, kMostFactor = 4;

// The parts of a kernel's PTX, with estimated machine instructions.
CodeShape shape_of(const Program& program);
std::vector<double> machine_factors(const Program& program, const CodeShape& machine);

}  // namespace cutegen::ptx
