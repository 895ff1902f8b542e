// SPDX-License-Identifier: Apache-2.0
// CopyArrivals: performs the mbarrier arrivals of completed copies. The copies are bulk copies and
// cp.async copies before a cp.async.mbarrier.arrive.
//
// Contract: in deliver(), each lane in `lanes` waits at an mbarrier, whose address is in `at`.
// deliver() completes copies that these mbarriers count, until the mbarriers' phases complete. A
// function that returns false has reported a `Finding` (a fault of the kernel).
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
  // Executes cp.async.mbarrier.arrive for one lane.
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
