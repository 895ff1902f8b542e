// SPDX-License-Identifier: Apache-2.0
// How many global loads of a program are in flight together.
//
// Contract: an estimate of what the assembler's scheduling allows. Loads of one straight piece of
// code wait together unless one gives the address of another, or a store lies between them (loads
// of constant data may pass it). It does not see loads that an iteration issues for the next one.
//
// Example: uint8_t n = load_groups(program)[pc];  // 4: this load waits with three others
#pragma once

#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// By instruction; 0 if it does not load from global memory.
std::vector<uint8_t> load_groups(const Program& program);

}  // namespace cutegen::ptx
