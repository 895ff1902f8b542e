// SPDX-License-Identifier: Apache-2.0
// CopyArrivals: arrivals at an mbarrier that happen when copies complete: bulk copies, and cp.async
// with cp.async.mbarrier.arrive.
//
// Contract: deliver() completes copies that the mbarriers of waiting lanes count, until their
// phases complete. A function that returns false has reported a finding.
//
// Example: if (!arrivals.deliver(w, waiting, at)) return false;
#pragma once

#include "ptx/bulk/bulk_unit.h"
#include "ptx/units/async_unit.h"

namespace cutegen::ptx {

class CopyArrivals {
 public:
  CopyArrivals(CtaState& cta, MbarrierPhases& phases, BulkUnit& bulk, AsyncUnit& async)
      : cta_(cta), phases_(phases), bulk_(bulk), async_(async) {}
  // cp.async.mbarrier.arrive by one lane.
  bool add(Warp& w, const Inst& in, int lane, uint64_t at);
  bool deliver(Warp& w, uint32_t lanes, const uint64_t* at);

 private:
  bool arrive(const AsyncArrival& a);

  CtaState& cta_;
  MbarrierPhases& phases_;
  BulkUnit& bulk_;
  AsyncUnit& async_;
};

}  // namespace cutegen::ptx
