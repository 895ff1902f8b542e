// SPDX-License-Identifier: Apache-2.0
// BulkUnit: copies of the asynchronous proxy, from their issue to their completion.
//
// Contract: issue() checks both sides and counts them; no byte moves yet, unless the launch's order
// is not in_order. A load arrives when a wait asks for its mbarrier. A store reads its source when
// its thread waits for the group to have read, and writes when it waits for the group, or at the
// end of the CTA. The oldest copy completes when there are too many. A function that returns false
// has reported a finding.
//
// Example: if (!copies.issue(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/mbarrier_phases.h"
#include "ptx/cta/warp_scheduler.h"
#include "ptx/units/bulk_checks.h"

namespace cutegen::ptx {

class BulkUnit {
 public:
  BulkUnit(CtaState& cta, WarpScheduler& scheduler, MbarrierPhases& phases)
      : cta_(cta), scheduler_(scheduler), phases_(phases), checks_(cta) {}
  bool issue(Warp& w, const Inst& in, uint32_t mask);
  void commit(const Warp& w, uint32_t mask);
  // cp.async.bulk.wait_group{.read}
  bool wait(Warp& w, const Inst& in, uint32_t mask);
  // Delivers copies that the mbarrier counts, the oldest first, until its phase completes.
  bool deliver_to(Warp& w, uint64_t mbarrier);
  // All threads have ended.
  bool drain();

 private:
  bool issue_lane(Warp& w, const Inst& in, int lane);
  bool read_tensor(Warp& w, const Inst& in, int lane, BulkCopy& c);
  bool read_bytes(Warp& w, const Inst& in, int lane, BulkCopy& c);
  bool place(Warp& w, const Inst& in, BulkCopy& c);
  bool start(Warp& w, BulkCopy c);
  // By index in CtaState::bulk. complete() removes the copy.
  bool complete(size_t index);
  bool arrive(BulkCopy& c);
  void read_source(BulkCopy& c);
  void put_row(const BulkCopy& c, const TensorRow& r);

  CtaState& cta_;
  WarpScheduler& scheduler_;
  MbarrierPhases& phases_;
  BulkChecks checks_;
};

}  // namespace cutegen::ptx
