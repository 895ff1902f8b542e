// SPDX-License-Identifier: Apache-2.0
// Estimates how many global loads of a program are in flight together.
//
// Contract: the estimate assumes that the assembler moves loads up as far as it may. The loads of
// straight-line code are in flight together, unless one loads the address of another, or a store
// lies between them; loads of constant data may overtake a store. The estimate does not see that a
// loop iteration may load data for the next one.
//
// Example: uint8_t n = load_groups(program)[pc];  // 4: this load waits with three others
#pragma once

#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// By instruction: loads in flight together; 0 if it does not load from global memory.
std::vector<uint8_t> load_groups(const Program& program);

}  // namespace cutegen::ptx
