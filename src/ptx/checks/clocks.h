// SPDX-License-Identifier: Apache-2.0
// Clocks: determines which accesses of other warps happened before the next access of a warp, in
// the sense of the PTX memory model.
//
// Contract: a label is a number that all accesses of a warp between two synchronisations share. If
// warps synchronise only by barriers for the whole CTA, all warps get the same new label at each
// barrier, and a warp gets its own new label at a fence of GPU scope. If HazardFacts::partial_order
// is true, each warp has a vector clock of labels, and the CTAs of a cluster share one ClockTable.
// ordered(w, u, label) is true if the accesses of warp u with the label `label` happened before the
// next access of warp w.
//
// peer(rank, warp) returns the number of a warp of another CTA, relative to this CTA. The clocks
// also have entries for agents, which represent asynchronous accesses. One agent per mbarrier
// represents the copies that complete on the mbarrier. One agent per warpgroup represents the reads
// of shared memory by the warpgroup's products (wgmma.mma_async). The label of a read is the number
// of its group of products (wgmma.commit_group), from 1. All four warps of a warpgroup execute the
// same products, so one agent serves all four warps.
//
// visible(w, u, label) is true if a proxy fence makes the accesses of warp u with the label `label`
// visible to the async proxy before the next access of warp w. fenced(w, u) is the last label of
// warp u whose accesses happened before a fence of GPU scope, if this fence happened before the
// next access of warp w. If warp w then sets a flag, a CTA that reads the flag also sees these
// accesses.
//
// Example: clocks.arrive(w, id); ... all have arrived: clocks.leave(w, id); clocks.clear(id);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cutegen::ptx {

inline constexpr int kWarpsOfGroup = 4;  // in a warpgroup

// A proxy fence for a state space, or a fence of GPU or cluster scope.
enum class FenceKind : uint8_t { proxy_shared, proxy_global, gpu };
inline constexpr size_t kFenceKinds = 3;

// The vector clocks of all warps of a CTA or cluster, and the labels of the agents.
class ClockTable {
 public:
  // A vector clock: for each warp or agent, the last of its labels whose accesses have certainly
  // happened. An empty vector means that no accesses have certainly happened.
  struct Known {
    std::vector<uint32_t> seen;
    std::array<std::vector<uint32_t>, kFenceKinds> fenced;  // by FenceKind
  };
  void begin(int ctas, int warps);
  int warps() const { return warps_; }  // of all CTAs
  // Returns the agent that represents the wgmma products of the warpgroup of a warp.
  int products_of(int warp) const {
    return warps_ + warp / of_cta_ * groups_ + warp % of_cta_ / kWarpsOfGroup;
  }
  // Returns the first warp of the warpgroup whose products an agent represents, or -1.
  int warp_of_products(int agent) const;
  // Call wait_products() when `warp` has waited for the products of its warpgroup up to `label`.
  void wait_products(int warp, uint32_t label);
  uint32_t label(int agent) const { return own_[size_t(agent)]; }
  uint32_t seen(int warp, int other) const { return known_[size_t(warp)].seen[size_t(other)]; }
  uint32_t fenced(FenceKind kind, int warp, int other) const {
    return known_[size_t(warp)].fenced[size_t(kind)][size_t(other)];
  }
  void give(int warp, Known& to);
  void take(int warp, const Known& from);
  void fence(FenceKind kind, int warp);
  void forget(Known& k) const;
  Known& barrier(uint64_t number) { return barriers_[number]; }
  Known& place(uint64_t key) { return places_[key]; }
  // The clocks of an mbarrier. The key of an mbarrier combines its address in shared memory with
  // the rank of its CTA.
  struct PhaseClock {
    Known now, done;  // clock of this phase's arrivals; clock of all completed phases
    int agent = 0;
  };
  PhaseClock& mbarrier(uint64_t key) { return mbarriers_[key]; }
  void init_mbarrier(uint64_t key);
  void complete_mbarrier(uint64_t key);

 private:
  void join(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) const;
  void join(Known& to, const Known& from) const;

  int warps_ = 0, agents_ = 0, most_ = 0;  // agents_: number of warps and agents in use
  int of_cta_ = 1, groups_ = 0;            // warps and warpgroups of one CTA
  uint32_t last_ = 1;
  std::array<bool, kFenceKinds> fences_ = {};  // by kind: whether a warp executed such a fence
  std::vector<uint32_t> own_;
  std::vector<Known> known_;  // by warp
  std::unordered_map<uint64_t, Known> barriers_, places_;
  std::unordered_map<uint64_t, PhaseClock> mbarriers_;
};

// The clocks of a CTA whose warps synchronise only by barriers for the whole CTA.
class BarrierClocks {
 public:
  void begin(int warps);
  uint32_t label(int warp) const { return warps_[size_t(warp)].label; }
  bool ordered(uint32_t label) const { return label < base_; }
  uint32_t last_ordered() const { return base_ - 1; }
  void join();
  void fence(int warp);
  uint32_t fenced(int warp, int other) const;

 private:
  struct OfWarp {
    uint32_t label = 1;
    // The warp's own label, and base_, at the warp's last fence.
    uint32_t own_fenced = 0, base_fenced = 0;
    uint32_t all_know_fenced = 0;  // own_fenced at the last barrier
  };
  uint32_t base_ = 1, last_ = 1;  // base_: the first label after the last barrier
  uint32_t all_base_fenced_ = 0;  // the largest base_fenced of a warp at the last barrier
  std::vector<OfWarp> warps_;
};

// The clocks as one CTA of the cluster sees them: BarrierClocks, or a ClockTable with the CTA's own
// warp numbers.
class Clocks {
 public:
  Clocks(int warps, bool vector) : warps_(warps), vector_(vector) {}
  // `ctas` is the size of the cluster. The first CTA of the cluster creates the table `shared`.
  // Without a cluster, `shared` is nullptr.
  void begin(int ctas = 1, int rank = 0, std::shared_ptr<ClockTable>* shared = nullptr);
  bool vector() const { return vector_; }
  int warps() const { return warps_; }
  uint32_t label(int agent) const {
    return vector_ ? table_->label(first_ + agent) : barrier_.label(agent);
  }
  bool ordered(int warp, int other, uint32_t label) const {
    return warp == other || (vector_ ? label <= table_->seen(first_ + warp, first_ + other)
                                     : barrier_.ordered(label));
  }
  // Returns the last label of warp `other` that is ordered before the next access of `warp`.
  uint32_t last_ordered(int warp, int other) const {
    if (warp == other) return label(warp);
    return vector_ ? table_->seen(first_ + warp, first_ + other) : barrier_.last_ordered();
  }
  bool visible(FenceKind kind, int warp, int other, uint32_t label) const {
    return label <= table_->fenced(kind, first_ + warp, first_ + other);
  }
  uint32_t fenced(int warp, int other) const {
    return vector_ ? table_->fenced(FenceKind::gpu, first_ + warp, first_ + other)
                   : barrier_.fenced(warp, other);
  }
  // Returns this CTA's number for a warp or an agent of the CTA with rank `rank`.
  int peer(size_t rank, int warp) const { return (int(rank) - rank_) * warps_ + warp; }
  int rank_of(int warp) const { return (first_ + warp) / warps_; }
  int first() const { return first_; }
  bool is_agent(int other) const {
    return vector_ ? first_ + other >= table_->warps() : other >= warps_;
  }
  // products_of() returns the agent of the products of a warp's warpgroup. warp_of_products()
  // returns the first warp of this warpgroup, or -1 for an agent of an mbarrier.
  int products_of(int warp) const { return table_->products_of(first_ + warp) - first_; }
  int warp_of_products(int agent) const;
  void wait_products(int warp, uint32_t label) { table_->wait_products(first_ + warp, label); }
  bool is_peer(int warp) const { return warp < 0 || (warp >= warps_ && !is_agent(warp)); }

  // Call join() at a barrier for all warps of the CTA.
  void join() { barrier_.join(); }
  void arrive(int warp, int barrier) { table_->give(first_ + warp, table_->barrier(at(barrier))); }
  void leave(int warp, int barrier) { table_->take(first_ + warp, table_->barrier(at(barrier))); }
  void clear(int barrier) { table_->forget(table_->barrier(at(barrier))); }
  // What a warp does before release(place) happens before what another warp does after a later
  // acquire(place). The place is an address in this CTA's shared memory, or kClusterPlace for the
  // cluster's barrier.
  void release(int warp, uint64_t place) { table_->give(first_ + warp, table_->place(key(place))); }
  void acquire(int warp, uint64_t place) { table_->take(first_ + warp, table_->place(key(place))); }

  void fence(FenceKind kind, int warp) {
    if (vector_)
      table_->fence(kind, first_ + warp);
    else if (kind == FenceKind::gpu)
      barrier_.fence(warp);
  }
  // `place` is the address of an mbarrier in shared memory. The mbarrier's agent represents the
  // copies that the mbarrier counts.
  void init_mbarrier(uint64_t place) { table_->init_mbarrier(key(place)); }
  int agent_of(uint64_t place) { return table_->mbarrier(key(place)).agent - first_; }
  void arrive_mbarrier(int warp, uint64_t place) {
    table_->give(first_ + warp, table_->mbarrier(key(place)).now);
  }
  void complete_mbarrier(uint64_t place) { table_->complete_mbarrier(key(place)); }
  void wait_mbarrier(int warp, uint64_t place) {
    table_->take(first_ + warp, table_->mbarrier(key(place)).done);
  }
  // Returns whether the accesses of warp `other` with the label `label` happened before the next
  // access of some warp of this CTA.
  bool any_ordered(int other, uint32_t label) const;

 private:
  static constexpr int kRankShift = 40;  // higher than all bits of shared addresses
  uint64_t at(int barrier) const { return uint64_t(barrier) | uint64_t(rank_) << kRankShift; }
  uint64_t key(uint64_t place) const {
    return ~place == 0 ? place : place | uint64_t(rank_) << kRankShift;
  }

  int warps_, rank_ = 0, first_ = 0;  // first_: index of this CTA's warp 0 in table_
  bool vector_;
  BarrierClocks barrier_;
  std::shared_ptr<ClockTable> table_, own_table_;
};

}  // namespace cutegen::ptx
