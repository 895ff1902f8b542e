// SPDX-License-Identifier: Apache-2.0
// For tests: what one PTX instruction computes for one thread, by the text of the ISA.
//
// Contract: slow and apart from the simulator: it reads the opcode's text and shares no code with
// the decoder or the handlers. Operands and results are bits; a predicate is 0 or 1. An opcode it
// does not know fails the test.
//
// Example: uint64_t sum = reference("add.s32", {1, 2});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cutegen::ptx {

uint64_t reference(const std::string& opcode, const std::vector<uint64_t>& operands);

}  // namespace cutegen::ptx
