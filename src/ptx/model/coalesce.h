// SPDX-License-Identifier: Apache-2.0
// Computes the cost of a warp's memory access: sectors for global and local memory, wavefronts for
// shared memory.
//
// Contract: the results depend only on the addresses of the active lanes. For global memory, the
// cost is the number of distinct 32-byte sectors. Shared memory has 32 banks of 4 bytes, and serves
// one group of lanes after another. A group of lanes is the whole warp for accesses of up to 4
// bytes, half a warp for 8 bytes, and a quarter of a warp for 16 bytes. The number of wavefronts of
// a group of lanes is the largest number of distinct words that the group accesses in one bank. If
// lanes n and n^1 of a load have the same address for every n, or if lanes n and n^2 do, the load
// returns half as much data, and its groups of lanes are twice as large (NVIDIA's developer forum,
// thread 77228; docs/measurements/profiles.md). For a shared atomic, lanes that access the same
// word count separately. For local memory, the hardware stores word k of all 32 lanes contiguously.
//
// Example: Wavefronts w = wavefronts_of(summary, at, mask, 4, SharedUse::load);
#pragma once

#include <vector>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {

enum class SharedUse { load, store, atomic };

struct Wavefronts {
  uint32_t count = 0, least = 0;  // least: wavefronts if there were no bank conflicts
};

uint32_t sectors_of(const AddressSummary& s, const uint64_t* at, uint32_t mask, uint64_t bytes);
Wavefronts wavefronts_of(const AddressSummary& s, const uint64_t* at, uint32_t mask, uint64_t bytes,
                         SharedUse use);
// `at` has each lane's offset in its own local memory.
uint32_t local_sectors_of(const AddressSummary& s, const uint64_t* at, uint32_t mask,
                          uint64_t bytes);

// Caches the last address pattern of each instruction and its cost, for warps with 32 active lanes.
// Two patterns have the same cost if their first addresses are equal modulo `period`, and each lane
// has the same distance from the first address in both patterns.
class PatternCache {
 public:
  explicit PatternCache(size_t instructions) : entry_of_(instructions) {}
  // Returns the cached cost, or nullptr if the pattern is not in the cache.
  const Wavefronts* find(size_t pc, const uint64_t* at, uint64_t period) const;
  void keep(size_t pc, const uint64_t* at, uint64_t period, Wavefronts cost);

 private:
  struct Entry {
    uint64_t distance[32] = {};
    uint64_t phase = 0;
    Wavefronts cost;
  };
  std::vector<uint32_t> entry_of_;  // for each instruction: 1 + index of its entry, or 0
  std::vector<Entry> entries_;
};

}  // namespace cutegen::ptx
