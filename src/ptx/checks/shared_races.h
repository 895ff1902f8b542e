// SPDX-License-Identifier: Apache-2.0
// SharedRaces: finds races in a CTA's shared memory.
//
// Contract: touch() records an access and returns the lanes that conflict with an earlier,
// unordered access of another warp; party() then names that access. If every barrier is for the
// whole CTA, a granule stores two sets of warps: its readers and its writers since the last
// barrier. Otherwise it stores the label (clocks.h) of the last write and of each warp's last read.
// Clocks::peer() numbers the warps of other CTAs of the cluster. A granule stores only one of their
// reads, the last, so the check may miss a race, but never invents one.
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
  // Call it when all warps of the CTA have passed a barrier.
  void join();
  // lanes: distinct_lanes() of the lanes that execute the access.
  uint32_t touch(Touch touch, int warp, int32_t pc, uint32_t lanes, const AddressSummary& s,
                 const uint64_t* at, uint32_t bytes);

  // Like touch(), for a product (wgmma) that reads a chunk of 16 bytes for each lane.
  uint32_t multiply(int warp, int32_t pc, uint32_t lanes, const uint64_t* at);

  struct Party {
    int warp = -1, lane = -1;  // lane -1: one of the warp's lanes
    int32_t pc = -1;           // -1: no longer known
    bool wrote = false;
    bool is_copy = false;  // a cp.async.bulk made the access; `warp` is an agent (clocks.h)
    int rank = -1;         // rank of the warp's CTA; -1: this CTA
  };
  // The other warp's unordered access to the bytes [at, at + bytes).
  Party party(Touch touch, int warp, uint64_t at, uint32_t bytes) const;

  // The next four functions are for bulk copies, and need vector clocks.
  // Whether all earlier accesses are ordered before a copy that `warp` starts now. Records nothing.
  bool may_copy(Touch touch, int warp, uint64_t from, uint64_t to) const;
  // Whether proxy fences make the last writes visible to a copy that `warp` starts.
  bool visible(int warp, uint64_t from, uint64_t to) const;
  // Records that the copy at `pc`, which an mbarrier counts, has written or reduced the bytes.
  void copied(Touch touch, int agent, int32_t pc, uint64_t from, uint64_t to);
  // Records that a copy has read the bytes and `reader`, a warp or an agent, has waited for it.
  void released(int reader, int32_t pc, uint64_t from, uint64_t to);
  // Returns the lanes whose chunks are not visible to a product of `warp`. Writes by cp.async need
  // no fence.
  uint32_t hidden(int warp, const uint64_t* at) const;
  // Marks a recorded write as made by cp.async.
  void by_async_copy(int warp, uint32_t lanes, const uint64_t* at, uint32_t bytes);
  // An access by another CTA that may happen after this CTA has ended; warp -1: none.
  Party unfinished() const;

 private:
  struct Trace {  // the last time an instruction of a warp touched shared memory
    uint32_t label = 0, low = 0, end = 0, stride = 0;  // stride 0: not contiguous
  };
  struct PeerTrace {  // the last access of a warp of another CTA, or of an agent
    uint32_t label = 0;
    int32_t pc = -1;
  };
  uint32_t simple(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                  const uint64_t* at, uint32_t bytes);
  static constexpr size_t kKnown = 8;
  // Caches what is ordered before one access, because most granules of an access have the same
  // labels.
  struct Ordered {
    uint64_t cells[kKnown] = {};  // by writer; see place_of()
    uint64_t peer = 0;
    size_t chunk = SIZE_MAX;  // whose product_reads_ are ordered
    uint32_t* reads;          // by warp, then by products of a warp: labels up to this one
  };
  Ordered none_ordered() const;
  bool clashes(Touch touch, int warp, size_t g, Ordered& known) const;
  bool clashes_in(Touch touch, int warp, size_t first, size_t end, Ordered& known) const;
  uint32_t partial(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                   const uint64_t* at, uint32_t bytes);
  size_t chunk_of(size_t g) const { return g << facts_.shared_shift >> kChunkShift; }
  bool seen(int warp, uint64_t cell, bool plain) const;
  bool clash(Touch touch, int warp, size_t g, int& other, bool& wrote) const;
  bool peer_read(int warp, size_t g, int& other) const;
  void note_peer(int other, int32_t pc);
  void note_peer_read(int other, size_t g);
  uint64_t labelled(bool is_atomic, int other) const;
  int writer_of(uint64_t cell) const;
  template <class F>
  void each_granule(uint64_t from, uint64_t to, F f) const;

  static constexpr int kChunkShift = 4, kBlockShift = 6;  // of bytes, of granules
  const HazardFacts& facts_;
  const Clocks& clocks_;
  size_t warps_, granules_;
  // The next vectors have entries for each granule. "whole barriers": every barrier is for the
  // whole CTA.
  // Whole barriers: writers << 32 | readers; other barriers: label and warp.
  std::vector<uint64_t> cells_;
  std::vector<uint32_t> atomics_;  // whole barriers: warps
  std::vector<uint32_t> reads_;    // other barriers: labels of reads, for each warp
  // Other barriers: whether a block of granules has reads_.
  std::vector<uint8_t> has_reads_;
  // Other barriers: labels of reads by products, for each chunk and warp; may be empty. A product
  // reads whole chunks.
  std::vector<uint32_t> product_reads_;
  // Other barriers: the last read by a warp of another CTA; may be empty.
  std::vector<uint64_t> peer_reads_;
  mutable std::vector<uint32_t> ordered_reads_;  // Ordered::reads
  std::vector<Trace> traces_;                    // one entry for each warp and access
  std::vector<PeerTrace> peers_;                 // one entry for each number in the ClockTable
  size_t low_ = 0, high_ = 0;                    // granules touched since the last barrier
};

}  // namespace cutegen::ptx
