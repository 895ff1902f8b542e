// SPDX-License-Identifier: Apache-2.0
// Races between the warps of a CTA in its shared memory.
//
// Contract: touch() records an access and returns the lanes that conflict with an earlier,
// unordered access of another warp; party() then names that access. If all barriers are for the
// whole CTA, a granule stores two sets of warps: its readers and its writers since the last
// barrier. Otherwise it stores the label (clocks.h) of the last write and of each warp's last read.
//
// Example: if (uint32_t bad = races.touch(Touch::read, w, pc, lanes, summary, at, 4)) ...
#pragma once

#include "ptx/checks/clocks.h"
#include "ptx/checks/facts.h"

namespace cutegen::ptx {

class SharedRaces {
 public:
  SharedRaces(const HazardFacts& facts, const Clocks& clocks, int warps, size_t shared_bytes);
  void begin();
  // A barrier of the whole CTA.
  void join();
  // lanes: distinct_lanes() of those that take part.
  uint32_t touch(Touch touch, int warp, int32_t pc, uint32_t lanes, const AddressSummary& s,
                 const uint64_t* at, uint32_t bytes);

  struct Party {
    int warp = -1, lane = -1;  // lane -1: one of the warp's
    int32_t pc = -1;           // -1: no longer known
    bool wrote = false;
    bool is_copy = false;  // by cp.async.bulk; `warp` is no warp
  };
  // The unordered access of another warp to bytes [at, at + bytes).
  Party party(Touch touch, int warp, uint64_t at, uint32_t bytes) const;

  // Copies of the asynchronous proxy touch bytes [from, to). Only with vector clocks.
  // Whether an access that `warp` starts is ordered behind all others; nothing is recorded.
  bool may_copy(Touch touch, int warp, uint64_t from, uint64_t to) const;
  // Whether proxy fences make the last writes visible to a copy that `warp` starts.
  bool visible(int warp, uint64_t from, uint64_t to) const;
  // The copy at `pc` has written them; an mbarrier counts it.
  void copied(int agent, int32_t pc, uint64_t from, uint64_t to);
  // A copy has read them, and `warp` has waited for it.
  void released(int warp, uint64_t from, uint64_t to);

 private:
  struct Trace {  // the last time an instruction of a warp touched shared memory
    uint32_t label = 0, low = 0, end = 0, stride = 0;  // stride 0: not contiguous
  };
  uint32_t simple(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                  const uint64_t* at, uint32_t bytes);
  bool partial(Touch touch, int warp, size_t g);
  bool clash(Touch touch, int warp, size_t g, int& other, bool& wrote) const;

  const HazardFacts& facts_;
  const Clocks& clocks_;
  size_t warps_, granules_;
  std::vector<uint64_t> cells_;    // whole barriers: writers << 32 | readers; else label, warp
  std::vector<uint32_t> atomics_;  // whole barriers: warps
  std::vector<uint32_t> reads_;    // else: labels by granule and warp
  std::vector<Trace> traces_;      // by warp and access
  size_t low_ = 0, high_ = 0;      // granules touched since the last barrier
  std::array<int32_t, Clocks::kMostAgents> copy_pc_{};  // the last copy of each agent
};

}  // namespace cutegen::ptx
