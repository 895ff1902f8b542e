// SPDX-License-Identifier: Apache-2.0
// SharedRaces: finds races in a CTA's shared memory.
//
// Contract: touch() records an access and returns the lanes that conflict with an earlier,
// unordered access of another warp. After touch() has found a conflict, party() returns the earlier
// access. If warps synchronise only by barriers for the whole CTA, each granule (a unit of 1 to 4
// bytes, checks/facts.h) stores two masks of warps: its readers and its writers since the last
// barrier. If HazardFacts::partial_order is true, each granule stores the label (clocks.h) of the
// last write, and the label of each warp's last read. Clocks::peer() gives the numbers of warps in
// other CTAs of the cluster. A granule stores only the last read by warps of other CTAs. The check
// of shared memory may miss a race, but it never reports a race that does not exist.
//
// Example: if (uint32_t bad = races.touch(Touch::read, w, pc, lanes, summary, at, 4)) ...
#pragma once

#include "ptx/checks/clocks.h"
#include "ptx/checks/facts.h"
#include "ptx/checks/tile_cells.h"

namespace cutegen::ptx {

class SharedRaces {
 public:
  SharedRaces(const HazardFacts& facts, const Clocks& clocks, int warps, size_t shared_bytes);
  void begin();
  // Call join() when all warps of the CTA have passed a barrier.
  void join();
  // `lanes` is the result of distinct_lanes() for the lanes that execute the access.
  uint32_t touch(Touch touch, int warp, int32_t pc, uint32_t lanes, const AddressSummary& s,
                 const uint64_t* at, uint32_t bytes);

  // A wgmma.mma_async. `label` is the number of the product's group (wgmma.commit_group) in the
  // warp, from 1.
  struct Product {
    int warp;
    int32_t pc;
    uint32_t label;
  };
  // Does what touch() does, for a wgmma.mma_async that reads a chunk of 16 bytes per lane.
  uint32_t multiply(const Product& p, uint32_t lanes, const uint64_t* at);
  // Does what multiply() and hidden() do, but for all chunks of a tile. Returns true if no chunk
  // has a conflict and all chunks are visible. If multiply_tile() returns false, call multiply()
  // and hidden() to get the lanes.
  bool multiply_tile(const Product& p, const SharedTile& tile, const uint32_t* chunks);

  struct Party {
    int warp = -1, lane = -1;  // lane -1: some lane of the warp
    int32_t pc = -1;           // pc of the access; -1: the simulator has forgotten it
    bool wrote = false;
    // If a cp.async.bulk made the access, `warp` is the number of an agent (clocks.h).
    bool is_copy = false;
    int rank = -1;  // rank of the warp's CTA; -1: this CTA
  };
  // Returns the access of another warp to the bytes [at, at + bytes) that races with `warp`.
  Party party(Touch touch, int warp, uint64_t at, uint32_t bytes) const;

  // may_copy(), visible(), copied() and released() are for bulk copies, and require vector clocks.
  // may_copy() returns whether all earlier accesses are ordered before a copy that `warp` starts
  // now, and records nothing.
  bool may_copy(Touch touch, int warp, uint64_t from, uint64_t to) const;
  // Returns whether proxy fences make the last writes visible to a copy that `warp` starts.
  bool visible(int warp, uint64_t from, uint64_t to) const;
  // Records that the bulk copy at `pc` has written the bytes or reduced into them. `agent` is the
  // entry of the vector clocks (clocks.h) for the mbarrier that counts the copy.
  void copied(Touch touch, int agent, int32_t pc, uint64_t from, uint64_t to);
  // Records that a bulk copy has read the bytes, and that `reader` (a warp or an agent) has waited
  // for this copy.
  void released(int reader, int32_t pc, uint64_t from, uint64_t to);
  // Returns the lanes whose 16-byte chunks are not visible to a wgmma.mma_async of `warp`. Writes
  // by cp.async are visible without a proxy fence.
  uint32_t hidden(int warp, const uint64_t* at) const;
  // Records that a cp.async made the write that touch() has recorded.
  void by_async_copy(int warp, uint32_t lanes, const uint64_t* at, uint32_t bytes);
  // Returns an access by another CTA that may happen after this CTA has ended. If there is none,
  // Party::warp is -1.
  Party unfinished() const;

 private:
  struct Trace {  // the last access to shared memory by one instruction of a warp
    uint32_t label = 0, low = 0, end = 0, stride = 0;  // stride 0: not contiguous
  };
  struct PeerTrace {  // the last access of a warp in another CTA, or of an agent
    uint32_t label = 0;
    int32_t pc = -1;
    int warp = -1;  // of a product
  };
  uint32_t simple(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                  const uint64_t* at, uint32_t bytes);
  static constexpr size_t kKnown = 8;
  // Caches the labels that are ordered before an access, because most granules of one access have
  // the same labels.
  struct Ordered {
    uint64_t cells[kKnown] = {};  // by writer; see place_of() in shared_races.cpp
    uint64_t peer = 0;
    size_t chunk = SIZE_MAX;  // the chunk whose product_reads_ are ordered
    uint32_t* reads;          // last ordered label, by warp, then by warpgroup
  };
  Ordered none_ordered() const;
  bool clashes(Touch touch, int warp, size_t g, Ordered& known) const;
  bool clashes_in(Touch touch, int warp, size_t first, size_t end, Ordered& known) const;
  bool all_ordered(Touch touch, int warp, size_t first, size_t end) const;
  uint32_t partial(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                   const uint64_t* at, uint32_t bytes);
  size_t chunk_of(size_t g) const { return g << facts_.shared_shift >> kChunkShift; }
  bool seen(int warp, uint64_t cell, bool plain) const;
  bool clash(Touch touch, int warp, size_t g, int& other, bool& wrote) const;
  bool peer_read(int warp, size_t g, int& other) const;
  bool collect(const Product& p, TileCells::Entry& e, const uint32_t* chunks);
  int products_of_group(size_t group) const {
    return clocks_.products_of(int(group) * kWarpsOfGroup);
  }
  void note_peer(int other, int32_t pc);
  void note_product(const Product& p);
  void note_peer_read(int other, size_t g);
  uint64_t labelled(bool is_atomic, int other) const;
  int writer_of(uint64_t cell) const;
  template <class F>
  void each_granule(uint64_t from, uint64_t to, F f) const;

  // log2 of the bytes in a chunk; log2 of the granules in a block
  static constexpr int kChunkShift = 4, kBlockShift = 6;
  const HazardFacts& facts_;
  const Clocks& clocks_;
  size_t warps_, groups_, granules_;
  // For each granule, cells_ has writers << 32 | readers or, if HazardFacts::partial_order is true,
  // the label and warp of the last write. The comments of the next members call this flag
  // "partial".
  std::vector<uint64_t> cells_;
  std::vector<uint32_t> atomics_;  // if not partial: by granule, the warps that executed atomics
  std::vector<uint32_t> reads_;    // if partial: labels of the reads by each warp
  // If partial: for each block of granules, whether reads_ has entries for the block.
  std::vector<uint8_t> has_reads_;
  // If partial: labels of reads by wgmma, for each 16-byte chunk and warpgroup. May be empty.
  std::vector<uint32_t> product_reads_;
  uint64_t version_ = 1;  // if partial: version of cells_
  TileCells tiles_;
  // If partial: for each granule, the last read by a warp of another CTA. May be empty.
  std::vector<uint64_t> peer_reads_;
  mutable std::vector<uint32_t> ordered_reads_;  // Ordered::reads
  std::vector<Trace> traces_;                    // one entry per warp and numbered access
  std::vector<PeerTrace> peers_;                 // one entry per warp or agent in the ClockTable
  size_t low_ = 0, high_ = 0;  // range of granules that warps accessed since the last barrier
};

}  // namespace cutegen::ptx
