// SPDX-License-Identifier: Apache-2.0
// Determines from the instructions of a kernel how its threads cooperate.
//
// Contract: mark_patterns() sets Program::communicates, pulls and waits, and Inst::pulls. A pull is
// an atomic integer addition that is in a loop and returns the old value. CTAs may use pulls to
// take tiles from a counter. Program::waits is set if a loop reads global memory with volatile,
// relaxed or acquiring loads.
//
// Example: mark_patterns(program); if (program.waits) { /* a random sample would wait forever */ }
#pragma once

#include "ptx/decode/program.h"

namespace cutegen::ptx {

void mark_patterns(Program& program);

// Returns whether the instruction copies one register to another, so that the assembler may give
// both registers the same machine register.
bool is_copy(const Program& program, size_t pc);
// Sets Inst::watched for each instruction that reads or writes a register of a wgmma (an
// accumulator or a fragment of A), or a copy of a wgmma's register.
void mark_wgmma_registers(Program& program);

}  // namespace cutegen::ptx
