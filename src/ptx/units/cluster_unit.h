// SPDX-License-Identifier: Apache-2.0
// ClusterUnit: executes barrier.cluster, mapa and getctarank.
//
// Contract: every CTA has a ClusterState if the program names clusters or the launch has them.
// MemoryUnit executes the accesses to other CTAs' shared memory. A function that returns false has
// reported a finding.
//
// Example: const Meet m = cluster.barrier(w, in, mask);
#pragma once

#include "ptx/cta/warp_scheduler.h"

namespace cutegen::ptx {

class ClusterUnit {
 public:
  ClusterUnit(CtaState& cta, WarpScheduler& scheduler) : cta_(cta), scheduler_(scheduler) {}
  Meet barrier(Warp& w, const Inst& in, uint32_t mask);
  bool map(Warp& w, const Inst& in, uint32_t mask);
  // Call it when the CTA ends, because no other CTA may use its shared memory later.
  bool left();

 private:
  bool arrive(Warp& w, const Inst& in, uint32_t mask);
  bool wait(Warp& w, uint32_t mask);
  void report(const Warp& w, int lane, const char* kind, std::string message);

  CtaState& cta_;
  WarpScheduler& scheduler_;
};

}  // namespace cutegen::ptx
