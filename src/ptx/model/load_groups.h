// SPDX-License-Identifier: Apache-2.0
// Estimates how many global loads of a program are in flight together.
//
// Contract: the estimate assumes that the assembler moves each load as early as possible. Two loads
// of straight-line code are in flight together, unless one load provides the address of the other
// load, or a store lies between the loads. Loads of constant data may move before a store. A
// condition that guards loads does not separate these loads, unless the condition depends on a
// load. The copies of one group of cp.async are in flight together, and so are the groups that a
// wait leaves pending. The estimate ignores loads that an iteration of a loop executes for the next
// iteration.
//
// Example: uint8_t n = load_groups(program)[pc];  // 4: this load waits with three others
#pragma once

#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// For each instruction, returns how many loads are in flight together, including the instruction
// itself, or 0 if the instruction is neither a global load nor a copy from global memory.
std::vector<uint8_t> load_groups(const Program& program);

}  // namespace cutegen::ptx
