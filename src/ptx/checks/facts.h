// SPDX-License-Identifier: Apache-2.0
// Computes facts about a kernel that the checks need before the kernel runs.
//
// Contract: the race checks track memory in granules. A granule has the size of the kernel's
// smallest access, but at most 4 bytes. Because of the granules, accesses to different elements
// within one 4-byte word do not conflict.
//
// Example: HazardFacts f = hazard_facts(program, block_threads);
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

enum class Touch : uint8_t { read, write, atomic };
inline Touch touch_of(const Inst& in) {
  return in.op == Op::load ? Touch::read : in.op == Op::store ? Touch::write : Touch::atomic;
}

struct HazardFacts {
  int shared_shift = 2, global_shift = 2;  // log2 of a granule's bytes
  // Whether warps synchronise not only by barriers for the whole CTA, but also by barriers for some
  // warps or for a cluster, atomics or volatile accesses to shared memory, or proxy fences.
  bool partial_order = false;
  bool shared_atomics = false;
  bool asynchronous = false;  // the kernel uses mbarriers or bulk copies
  // The instructions that may access shared memory have numbers from 0. For each pc: the number of
  // its instruction, or -1.
  std::vector<int32_t> access_index;
  std::vector<int32_t> access_pc;   // by that number
  std::vector<bool> access_writes;  // by that number
};

HazardFacts hazard_facts(const Program& program, int64_t block_threads);

}  // namespace cutegen::ptx
