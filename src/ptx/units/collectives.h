// SPDX-License-Identifier: Apache-2.0
// Collectives: executes instructions with a member mask: shfl.sync, vote.sync, redux, match, elect,
// warpsync.
//
// Contract: lanes with the same member mask execute together, as soon as all members that are alive
// have arrived. Lanes that arrive first wait (Meet::parked).
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
