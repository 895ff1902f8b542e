// SPDX-License-Identifier: Apache-2.0
// Collectives: executes the instructions with a member mask (shfl.sync, vote.sync, redux, match,
// elect, bar.warp.sync).
//
// Contract: the lanes in the member mask execute the instruction together, as soon as every lane in
// the mask has arrived or exited. Lanes that arrive early wait (Meet::parked).
//
// Example: if (collectives.execute(w, in, mask) == Meet::here) ++w.current.pc;
#pragma once

#include "ptx/cta/warp_scheduler.h"

namespace cutegen::ptx {

class Collectives {
 public:
  Collectives(CtaState& cta, WarpScheduler& scheduler) : cta_(cta), scheduler_(scheduler) {}
  Meet execute(Warp& w, const Inst& in, uint32_t mask);

 private:
  CtaState& cta_;
  WarpScheduler& scheduler_;
};

}  // namespace cutegen::ptx
