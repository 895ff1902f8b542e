// SPDX-License-Identifier: Apache-2.0
// ClusterUnit: barrier.cluster, mapa, getctarank, and accesses of other CTAs' shared memory.
//
// Contract: every CTA has a ClusterState if the program names clusters or runs in them. An access
// of a CTA that has ended is a finding. Races between CTAs in shared memory are not looked for.
//
// Example: if (!cluster.access(a)) return false;
#pragma once

#include "ptx/cta/warp_scheduler.h"

namespace cutegen::ptx {

class ClusterUnit {
 public:
  ClusterUnit(CtaState& cta, WarpScheduler& scheduler) : cta_(cta), scheduler_(scheduler) {}
  Meet barrier(Warp& w, const Inst& in, uint32_t mask);
  bool map(Warp& w, const Inst& in, uint32_t mask);

 private:
  bool arrive(Warp& w, const Inst& in, uint32_t mask);
  bool wait(Warp& w, uint32_t mask);
  bool report(const Warp& w, int lane, const char* kind, std::string message);

  CtaState& cta_;
  WarpScheduler& scheduler_;
};

}  // namespace cutegen::ptx
