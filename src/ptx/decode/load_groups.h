// SPDX-License-Identifier: Apache-2.0
// How many global loads are on their way together: what a program does about latency.
//
// Contract: an estimate of what the assembler's scheduling allows. Loads of one straight piece of
// code wait together unless the address of one comes from another, or a store lies between them
// (which loads of constant data may pass). Loads that one iteration of a loop issues for the next
// are not seen.
//
// Example: uint8_t n = load_groups(program)[pc];  // 4: this load waits with three others
#pragma once

#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// By instruction; 0 for what is no load from global memory.
std::vector<uint8_t> load_groups(const Program& program);

}  // namespace cutegen::ptx
