// SPDX-License-Identifier: Apache-2.0
// How the threads of a kernel work together, as far as its text shows.
//
// Contract: mark_patterns() sets Program::communicates, pulls and waits, and Inst::pulls. A pull is
// an atomic integer addition in a loop that returns the old value: CTAs take tiles from a counter
// this way. A kernel waits if a loop reads global memory with volatile, relaxed or acquiring loads.
//
// Example: mark_patterns(program); if (program.waits) { /* a random sample would wait forever */ }
#pragma once

#include "ptx/decode/program.h"

namespace cutegen::ptx {

void mark_patterns(Program& program);

// A move of one register: the assembler may give both the same place.
bool is_copy(const Program& program, size_t pc);
// Marks with Inst::watched each instruction that reads or writes an accumulator of wgmma or a
// fragment of A, or a copy of one.
void mark_wgmma_registers(Program& program);

}  // namespace cutegen::ptx
