// SPDX-License-Identifier: Apache-2.0
// For tests: computes one PTX instruction for one thread, as the PTX ISA describes it.
//
// Contract: reference() is slow and independent of the simulator. It interprets the text of the
// opcode, and shares no code with the simulator's decoder or instruction handlers. Operands and
// results are bit patterns; a predicate is 0 or 1. An unknown opcode fails the test.
//
// Example: uint64_t sum = reference("add.s32", {1, 2});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cutegen::ptx {

uint64_t reference(const std::string& opcode, const std::vector<uint64_t>& operands);

}  // namespace cutegen::ptx
