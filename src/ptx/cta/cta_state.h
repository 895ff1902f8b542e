// SPDX-License-Identifier: Apache-2.0
// CtaState: the whole state of one CTA of a launch, which the classes that execute its instructions
// share.
//
// Contract: CtaState has plain data, and the few functions that all these classes need. Each class
// that executes instructions (ptx/units/, WarpScheduler, Barriers) refers to one CtaState and may
// change it. Only one host thread at a time runs a CTA. After report(), or if `status` is not `ok`,
// the CTA must not continue.
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

inline constexpr int kAtMbarrier = -2;  // value of Warp::barrier if the warp waits at an mbarrier

// The state of a warp's wait at an mbarrier.
struct MbarrierWait {
  uint64_t at = 0;
  bool passed = false;     // the phase has completed since the wait began
  bool timed_out = false;  // the wait ends although the phase is not complete
  bool tried = false;      // the last test_wait or try_wait found the phase incomplete
};

struct CtaState {
  explicit CtaState(Job& launch);
  // Returns how many bytes of host memory the simulation of one CTA needs.
  static int64_t bytes(const Job& job);
  // The CTAs that one host thread runs may share one `counter` object.
  void begin(int64_t index, Counting& counter, std::shared_ptr<ClusterState> of = nullptr);

  // Ends the CTA with a fault of the kernel (`Finding`). The finding names lane `lane` of the warp
  // `w` and the warp's current instruction.
  void report(const Warp& w, int lane, Finding found);
  // Adds the instruction, CTA and thread to a finding, and returns the finding. Does not report it.
  Finding located(const Warp& w, int lane, Finding found) const;
  // Returns text such as "line 12 (bar.sync 1, 64)".
  std::string place(int32_t pc) const;
  // Returns the grid index of the CTA with this rank in the cluster; -1 means this CTA.
  std::array<int64_t, 3> place_of(int rank_in_cluster) const;
  Finding::Party party(int32_t pc, int thread, const std::array<int64_t, 3>& of) const;

  uint64_t executed() const;                 // number of warp instructions so far
  uint32_t threads_of(const Warp& w) const;  // mask of the lanes with which the warp starts
  // Returns the launch's `Chain` (the model of one warp's time) if the Chain models warp `w`,
  // otherwise nullptr.
  Chain* chain_of(const Warp& w) const {
    return linear == job.traced && w.index == 0 ? job.chain.get() : nullptr;
  }

  Job& job;
  const int64_t block_threads;
  std::vector<Warp> warps;
  int alive_warps = 0;
  RegisterFile registers;
  std::vector<std::byte> shared, local;
  // Identifies the content of `shared`: no two contents in the process have the same number.
  // Whoever changes `shared` must increment shared_version.
  uint64_t shared_version = 0;
  CopiesInFlight copies;
  Mbarriers mbarriers;
  std::vector<MbarrierWait> mbarrier_waits;  // by warp
  BulkCopies bulk;
  SharedGuard guard;
  std::unique_ptr<WgmmaState> wgmma;  // nullptr if the program has no wgmma
  std::unique_ptr<Hazards> hazards;   // nullptr: no race or undefined checks
  const bool races;                   // whether the race checks are on

  std::shared_ptr<ClusterState> cluster;  // nullptr without clusters
  size_t rank = 0;                        // in its cluster

  int64_t linear = 0;  // the CTA's index in the grid
  int64_t first = 0;   // index of the first CTA in the same cluster
  std::array<int64_t, 3> at{0, 0, 0};
  Counting* counting = nullptr;
  CtaWork work;
  LaunchStatus status = LaunchStatus::ok;
  Finding finding;  // valid if the status is LaunchStatus::finding
  // A finding that the CTA reports when it ends, unless the CTA also has a race.
  std::optional<Finding> pending;
  std::string reason;  // why the launch ended early, for a cause other than `finding`
};

}  // namespace cutegen::ptx
