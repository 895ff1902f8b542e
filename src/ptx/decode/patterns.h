// SPDX-License-Identifier: Apache-2.0
// Finds out from a kernel's instructions how its threads work together.
//
// Contract: mark_patterns() sets Program::communicates, pulls and waits, and Inst::pulls. A pull is
// an atomic integer addition, in a loop, that returns the old value: CTAs take tiles from a counter
// this way. `waits` is set if a loop reads global memory with volatile, relaxed or acquiring loads.
//
// Example: mark_patterns(program); if (program.waits) { /* a random sample would wait forever */ }
#pragma once

#include "ptx/decode/program.h"

namespace cutegen::ptx {

void mark_patterns(Program& program);

// Whether the instruction moves one register to another: the assembler may then give both the same
// machine register.
bool is_copy(const Program& program, size_t pc);
// Sets Inst::watched for each instruction that reads or writes a register of a wgmma (an
// accumulator or a fragment of A), or a copy of such a register.
void mark_wgmma_registers(Program& program);

}  // namespace cutegen::ptx
