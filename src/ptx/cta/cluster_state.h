// SPDX-License-Identifier: Apache-2.0
// ClusterState: the CTAs of one cluster, and the barrier that they share.
//
// Contract: the barrier obeys "barrier.cluster" of the PTX ISA. One host thread runs all CTAs of a
// cluster. at() returns nullptr for a CTA that has ended. A phase of the barrier completes when
// every thread that has not exited has arrived. When a phase completes, complete() lets the waiting
// warps continue.
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

// In a shared memory address, the bits below kRankShift are the offset. The bits from kRankShift on
// are 0 for the executing CTA's own memory; for another CTA's memory, these bits are 1 plus the
// cluster rank of this CTA.
inline constexpr int kRankShift = 24;
static_assert(kSharedOfCta == uint64_t{1} << kRankShift);
// The address by which the race checks (`Clocks`) refer to the barrier of the cluster.
inline constexpr uint64_t kClusterPlace = ~uint64_t{0};

inline constexpr int64_t kMostClusterCtas = 16;  // a kernel must opt in to more than 8 CTAs

class ClusterState {
 public:
  // The state of one warp at the cluster's barrier.
  struct Seat {
    uint32_t arrived = 0;  // lanes that have arrived, but not yet waited
    uint64_t phase = 0;    // the phase in which these lanes arrived
  };
  explicit ClusterState(int64_t number) : unit(number) {}
  // Adds the CTA with the next rank of the cluster.
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
  // Returns whether a warp of any CTA in the cluster can run.
  bool can_go_on() const;
  // `hopeless` means that no warp of the CTA can run, and that no wait at an mbarrier can end
  // without another CTA.
  void set_hopeless(size_t rank, bool hopeless) { hopeless_[rank] = hopeless; }
  // Returns whether another CTA of the cluster can still make progress.
  bool others_may_go_on(size_t rank) const;
  // arrived(): threads that have arrived in this phase; alive(): threads that have not exited.
  int64_t arrived() const { return count(true); }
  int64_t alive() const { return count(false); }

  const int64_t unit;  // index of the cluster in the grid
  // The clocks that the race checks of all CTAs in the cluster share. The cluster's first CTA
  // creates them.
  std::shared_ptr<ClockTable> clocks;
  CtaWork work;  // total work of the CTAs that have ended

 private:
  int64_t count(bool arrived_only) const;
  bool all_are_here() const;

  std::vector<CtaState*> ctas_;           // by rank
  std::vector<std::vector<Seat>> seats_;  // one entry per rank and warp
  std::vector<bool> hopeless_;            // by rank
  uint64_t phase_ = 0;
  size_t left_ = 0;
};

}  // namespace cutegen::ptx
