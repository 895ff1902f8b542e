// SPDX-License-Identifier: Apache-2.0
// StoreReach: the parts of each buffer that the stores of a large grid reach, without running the
// CTAs.
//
// Contract: find() divides each buffer into kBins equal parts, and computes the addresses of the
// executed stores for many pairs of CTA and thread: for all pairs of a small grid, otherwise for a
// random sample that misses a part with a probability below 1e-9 if the CTAs store equally much.
// The guards of stores count as true, so find() may report too many parts as reached. known() is
// false if an address depends on memory, on another thread, on nested loops, or on more than a few
// thousand rounds of a loop, or if the launch also writes by other instructions than stores.
//
// Example: StoreReach reach = StoreReach::find(job, ran, seed);
//          if (reach.known()) for (const auto& [buffer, parts] : reach.buffers()) { ... }
#pragma once

#include <bitset>
#include <map>
#include <vector>

#include "ptx/cta/job.h"

namespace cutegen::ptx {

class StoreReach {
 public:
  static constexpr size_t kBins = 512;
  using Parts = std::bitset<kBins>;
  // What one warp of the sampled CTAs executed: the most runs of each store, by pc.
  struct Ran {
    std::map<size_t, double> runs_per_warp;  // stores to global memory
    bool other_writes = false;               // atomics, bulk copies
  };
  static StoreReach find(const Job& job, const Ran& ran, uint64_t seed);

  bool known() const { return known_; }
  // By the index of the buffer in the memory's state.
  const std::map<size_t, Parts>& buffers() const { return buffers_; }

 private:
  bool known_ = false;
  std::map<size_t, Parts> buffers_;
};

}  // namespace cutegen::ptx
