// SPDX-License-Identifier: Apache-2.0
// Decodes a parsed PTX function into a `Program`, which the simulator can run.
//
// Contract: an unknown variant of an opcode becomes an instruction that ends the launch as
// `unsupported` when a warp executes it. For an undeclared name or an operand of the wrong size,
// decode() returns a user error.
//
// Example: CG_TRY(Program p, decode(module, function));
#pragma once

#include "base/result.h"
#include "ptx/decode/program.h"

namespace cutegen::ptx {

Result<Program> decode(const ParsedModule& module, const Function& function);

// The offsets of the registers that an instruction reads and writes.
struct Effects {
  std::vector<int32_t> reads, writes;
};
// Sets Program::zeroed and Program::registers_estimate. `slots` lists all registers.
void analyze_liveness(Program& program, const std::vector<Effects>& effects,
                      const std::vector<SlotRange>& slots);

}  // namespace cutegen::ptx
