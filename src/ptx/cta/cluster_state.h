// SPDX-License-Identifier: Apache-2.0
// ClusterState: the CTAs of one cluster, and the barrier that they share.
//
// Contract: PTX ISA, "barrier.cluster". One host thread runs all CTAs of a cluster. at() returns
// nullptr for a CTA that has ended. A phase of the barrier completes when every thread that has not
// exited has arrived; complete() then lets the waiting warps continue.
//
// Example: cluster.add(cta); seat(cta, warp).arrived |= mask; cluster.complete();
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptx/checks/clocks.h"
#include "ptx/model/counting.h"

namespace cutegen::ptx {

struct CtaState;

// In an address of shared memory, the bits from kRankShift on are the rank of its CTA in the
// cluster plus 1, or 0 for the executing CTA's own memory. The bits below are the offset.
inline constexpr int kRankShift = 24;
static_assert(kSharedOfCta == uint64_t{1} << kRankShift);
// The place that stands for the cluster's barrier in Clocks.
inline constexpr uint64_t kClusterPlace = ~uint64_t{0};

inline constexpr int64_t kMostClusterCtas = 16;  // a GPU needs an opt-in for more than 8

class ClusterState {
 public:
  // What one warp has done at the barrier.
  struct Seat {
    uint32_t arrived = 0;  // lanes that have arrived and have not waited since
    uint64_t phase = 0;    // the phase in which they arrived
  };
  explicit ClusterState(int64_t number) : unit(number) {}
  // Call it in the order of the ranks.
  void add(CtaState& cta);
  size_t size() const { return ctas_.size(); }
  CtaState* at(size_t rank) const { return rank < ctas_.size() ? ctas_[rank] : nullptr; }
  void end(size_t rank);
  bool ended() const { return left_ == 0; }

  Seat& seat(size_t rank, int warp) { return seats_[rank][size_t(warp)]; }
  bool passed(const Seat& s) const { return s.phase < phase_; }
  uint64_t phase() const { return phase_; }
  // Ends the phase if all threads have arrived.
  void complete();
  // Whether a warp of any CTA can run.
  bool can_go_on() const;
  // hopeless: no warp of the CTA can run, and its waits at mbarriers cannot end by themselves.
  void set_hopeless(size_t rank, bool hopeless) { hopeless_[rank] = hopeless; }
  // Whether another CTA of the cluster can still make progress.
  bool others_may_go_on(size_t rank) const;
  // Threads that have arrived in this phase; threads that are alive.
  int64_t arrived() const { return count(true); }
  int64_t alive() const { return count(false); }

  const int64_t unit;                  // number of the cluster in the grid
  std::shared_ptr<ClockTable> clocks;  // shared by its CTAs' checks; the first CTA creates it
  CtaWork work;                        // work of the CTAs that have ended

 private:
  int64_t count(bool arrived_only) const;
  bool all_are_here() const;

  std::vector<CtaState*> ctas_;           // by rank
  std::vector<std::vector<Seat>> seats_;  // one entry for each rank and warp
  std::vector<bool> hopeless_;            // by rank
  uint64_t phase_ = 0;
  size_t left_ = 0;
};

}  // namespace cutegen::ptx
