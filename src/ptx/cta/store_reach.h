// SPDX-License-Identifier: Apache-2.0
// StoreReach: finds the parts of each buffer that the stores of a large grid reach, without running
// the CTAs.
//
// Contract: find() divides each written buffer into kBins equal parts, and computes the addresses
// of all global stores for pairs of CTA and thread. For a small grid, find() takes all pairs,
// otherwise a random sample. If all CTAs store equally much, the sample misses a part with a
// probability below 1e-9. If parts seem unreached, find() looks at the CTAs of each kind
// (cta_kinds.h) separately, because a few CTAs may write a part alone.
//
// If all parts seem reached, find() then omits the stores that a thread cannot execute
// (StorePaths). For this, find() evaluates the predicates of branches, exits and stores that depend
// only on indices and parameters, in every thread of every CTA. All other predicates may be true or
// false, so find() may report too many parts as reached.
//
// If all parts are still reached, but a few CTAs of each kind suggest that the stores have fewer
// bytes than the buffer, find() counts the bytes of all stores. If the count is smaller than the
// buffer, some bytes are unreached.
//
// known() is false if the search for unreached parts takes too long, if the address of a store
// depends on memory, on another thread or on a loop, or if the launch also writes by other
// instructions than stores.
//
// Example: StoreReach reach = StoreReach::find(job, kinds, ran, seed);
//          if (reach.known()) for (const auto& [buffer, parts] : reach.buffers()) { ... }
#pragma once

#include <bitset>
#include <map>
#include <set>

#include "ptx/cta/cta_kinds.h"
#include "ptx/cta/job.h"

namespace cutegen::ptx {

class StoreReach {
 public:
  static constexpr size_t kBins = 512;
  using Parts = std::bitset<kBins>;
  struct Reached {
    Parts parts;
    uint64_t bytes = UINT64_MAX;  // the stores have at most these bytes; UINT64_MAX: unknown
  };
  // What the CTAs of the sample did.
  struct Ran {
    std::set<size_t> buffers;    // written buffers, by index in Memory::State
    std::set<size_t> elsewhere;  // pcs of stores that wrote no global memory
    bool other_writes = false;   // atomics, bulk copies
  };
  static StoreReach find(const Job& job, const CtaKinds& kinds, const Ran& ran, uint64_t seed);

  bool known() const { return known_; }
  const std::map<size_t, Reached>& buffers() const { return buffers_; }

 private:
  bool known_ = false;
  std::map<size_t, Reached> buffers_;
};

}  // namespace cutegen::ptx
