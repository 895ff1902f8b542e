// SPDX-License-Identifier: Apache-2.0
// From a parsed function to a Program.
//
// Contract: an opcode or form that is not known becomes an instruction that reports itself when it
// is executed; a name that is not declared or an operand of the wrong size is a user error.
//
// Example: CG_TRY(Program p, decode(module, function));
#pragma once

#include "base/result.h"
#include "ptx/decode/program.h"

namespace cutegen::ptx {

Result<Program> decode(const ParsedModule& module, const Function& function);

// What an instruction reads and writes: offsets of register slots.
struct Effects {
  std::vector<int32_t> reads, writes;
};
// Fills zeroed and registers_estimate. slot_bytes: size of a lane by slot offset order.
void analyze_liveness(Program& program, const std::vector<Effects>& effects,
                      const std::vector<SlotRange>& slots);

}  // namespace cutegen::ptx
