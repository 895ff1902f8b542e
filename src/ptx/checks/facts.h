// SPDX-License-Identifier: Apache-2.0
// What the checks need to know of a kernel before it runs.
//
// Contract: a granule is the least that an access of the kernel touches: 4 bytes, or 2 or 1 where
// it has such accesses, so that neighbours in one word are no conflict.
//
// Example: HazardFacts f = hazard_facts(program, block_threads);
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// What an access does, for the checks.
enum class Touch : uint8_t { read, write, atomic };
inline Touch touch_of(const Inst& in) {
  return in.op == Op::load ? Touch::read : in.op == Op::store ? Touch::write : Touch::atomic;
}

struct HazardFacts {
  int shared_shift = 2, global_shift = 2;  // log2 of a granule
  // Warps of a CTA are ordered by more than barriers of them all: named barriers with a part of
  // them, or atomics and volatile accesses in shared memory.
  bool partial_order = false;
  bool shared_atomics = false;
  std::vector<int32_t> access_index;  // by pc: which of those that may touch shared memory; or -1
  std::vector<int32_t> access_pc;     // and back
  std::vector<bool> access_writes;    // by that index
};

HazardFacts hazard_facts(const Program& program, int64_t block_threads);

}  // namespace cutegen::ptx
