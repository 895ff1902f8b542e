// SPDX-License-Identifier: Apache-2.0
// CtaState: the whole state of one CTA of a launch, for the units that execute its instructions.
//
// Contract: plain data, and the few functions that all units need. Each unit (ptx/units/,
// WarpScheduler, Barriers) refers to one CtaState and may change it. One host thread at a time runs
// a CTA. After report(), or if `status` is not ok, the CTA must not continue.
//
// Example: CtaState cta(job); cta.begin(linear, counting);
//          cta.report(warp, lane, {.kind = "trap"});
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptx/checks/hazards.h"
#include "ptx/cta/cluster_state.h"
#include "ptx/cta/job.h"
#include "ptx/cta/registers.h"
#include "ptx/cta/warp.h"
#include "ptx/cta/wgmma_state.h"
#include "ptx/model/counting.h"
#include "ptx/ops/async_copy.h"
#include "ptx/ops/bulk_copy.h"
#include "ptx/ops/mbarrier.h"
#include "ptx/ops/shared_guard.h"

namespace cutegen::ptx {

inline constexpr int kAtMbarrier = -2;  // Warp::barrier of a warp that waits at an mbarrier

// What a warp waits for at an mbarrier.
struct MbarrierWait {
  uint64_t at = 0;
  bool passed = false;     // the phase has completed since
  bool timed_out = false;  // the wait ends before the phase completes
  bool tried = false;      // the last test_wait or try_wait found the phase incomplete
};

struct CtaState {
  explicit CtaState(Job& launch);
  // Bytes of host memory that one CTA needs.
  static int64_t bytes(const Job& job);
  // All CTAs that one host thread runs may share one `counter` object.
  void begin(int64_t index, Counting& counter, std::shared_ptr<ClusterState> of = nullptr);

  // Ends the CTA with a finding, which names `lane` of `w` and the warp's current instruction.
  void report(const Warp& w, int lane, Finding found);
  // Returns the finding with its place, without reporting it.
  Finding located(const Warp& w, int lane, Finding found) const;
  // "line 12 (bar.sync 1, 64)"
  std::string place(int32_t pc) const;
  // Where the CTA with this rank in the cluster lies in the grid; -1: this CTA.
  std::array<int64_t, 3> place_of(int rank_in_cluster) const;
  Finding::Party party(int32_t pc, int thread, const std::array<int64_t, 3>& of) const;

  uint64_t executed() const;                 // warp instructions so far
  uint32_t threads_of(const Warp& w) const;  // the lanes that the warp had when it began
  // The chain that follows this warp, or nullptr.
  Chain* chain_of(const Warp& w) const {
    return linear == job.traced && w.index == 0 ? job.chain.get() : nullptr;
  }

  Job& job;
  const int64_t block_threads;
  std::vector<Warp> warps;
  int alive_warps = 0;
  RegisterFile registers;
  std::vector<std::byte> shared, local;
  CopiesInFlight copies;
  Mbarriers mbarriers;
  std::vector<MbarrierWait> mbarrier_waits;  // by warp
  BulkCopies bulk;
  SharedGuard guard;
  std::unique_ptr<WgmmaState> wgmma;  // nullptr: the program has no wgmma
  std::unique_ptr<Hazards> hazards;   // nullptr: the checks are off
  const bool races;                   // whether the hazards check for races

  std::shared_ptr<ClusterState> cluster;  // nullptr: nothing uses clusters
  size_t rank = 0;                        // in its cluster

  int64_t linear = 0;  // the CTA's index in the grid
  int64_t first = 0;   // index of the first CTA of its cluster
  std::array<int64_t, 3> at{0, 0, 0};
  Counting* counting = nullptr;
  CtaWork work;
  LaunchStatus status = LaunchStatus::ok;
  Finding finding;                 // with LaunchStatus::finding
  std::optional<Finding> pending;  // reported when the CTA ends, unless the CTA also has a race
  std::string reason;              // why the launch ends, with any status other than `finding`
};

}  // namespace cutegen::ptx
