// SPDX-License-Identifier: Apache-2.0
// The cost of a warp-wide memory access: sectors of global and local memory, wavefronts of shared
// memory.
//
// Contract: pure functions of the active lanes' addresses, exact at PTX level.
// Global memory: a request costs the number of distinct 32-byte sectors.
// Shared memory has 32 banks of 4 bytes. It serves a group of lanes at a time: the whole warp for
// accesses of up to 4 bytes, half a warp for 8 bytes, a quarter for 16. A group takes as many
// wavefronts as its busiest bank has distinct words; lanes that read the same word share it. If
// lanes n and n^1, or n and n^2, of a load have the same address for every n, the load returns half
// as much data, and its groups are twice as large (NVIDIA's developer forum, thread 77228;
// docs/measurements/profiles.md). An atomic serves each lane alone.
// Local memory: the hardware places word k of all 32 lanes side by side.
//
// Example: Wavefronts w = wavefronts_of(summary, at, mask, 4, SharedUse::load);
#pragma once

#include <vector>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {

enum class SharedUse { load, store, atomic };

struct Wavefronts {
  uint32_t count = 0, least = 0;  // wavefronts; wavefronts without bank conflicts
};

uint32_t sectors_of(const AddressSummary& s, const uint64_t* at, uint32_t mask, uint64_t bytes);
Wavefronts wavefronts_of(const AddressSummary& s, const uint64_t* at, uint32_t mask, uint64_t bytes,
                         SharedUse use);
// at: offsets within each lane's own local memory.
uint32_t local_sectors_of(const AddressSummary& s, const uint64_t* at, uint32_t mask,
                          uint64_t bytes);

// For full warps: remembers each instruction's last address pattern and its cost. Two patterns cost
// the same if they have the same first address modulo `period` and the same distances from it.
class PatternCache {
 public:
  explicit PatternCache(size_t instructions) : entry_of_(instructions) {}
  // The remembered cost, or nullptr.
  const Wavefronts* find(size_t pc, const uint64_t* at, uint64_t period) const;
  void keep(size_t pc, const uint64_t* at, uint64_t period, Wavefronts cost);

 private:
  struct Entry {
    uint64_t distance[32] = {};
    uint64_t phase = 0;
    Wavefronts cost;
  };
  std::vector<uint32_t> entry_of_;  // for each instruction: index of its entry + 1, or 0
  std::vector<Entry> entries_;
};

}  // namespace cutegen::ptx
