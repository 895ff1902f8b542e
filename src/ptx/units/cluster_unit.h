// SPDX-License-Identifier: Apache-2.0
// ClusterUnit: executes barrier.cluster, mapa and getctarank.
//
// Contract: every CTA has a ClusterState if the program uses cluster instructions or the launch has
// clusters. MemoryUnit executes accesses to the shared memory of other CTAs. A function that
// returns false has reported a `Finding` (a fault of the kernel).
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
  // Call left() when this CTA ends. left() reports accesses of other CTAs to this CTA's shared
  // memory that no synchronisation orders before the end of this CTA. On a GPU, these accesses
  // might come too late.
  bool left();

 private:
  bool arrive(Warp& w, const Inst& in, uint32_t mask);
  bool wait(Warp& w, uint32_t mask);
  void report(const Warp& w, int lane, const char* kind, std::string message);

  CtaState& cta_;
  WarpScheduler& scheduler_;
};

}  // namespace cutegen::ptx
