// SPDX-License-Identifier: Apache-2.0
// BulkUnit: executes bulk copies (cp.async.bulk), from issue to completion.
//
// Contract: issue() checks and counts the accesses to shared and global memory. issue() usually
// moves no bytes, but a load may arrive at once if Job::order is not `in_order`. The CTA that
// receives a load keeps the load in CtaState::bulk; a multicast becomes one load per CTA. A load
// arrives when a warp waits at the load's mbarrier. A store reads its source when its thread
// executes cp.async.bulk.wait_group.read. A store writes global memory when its thread waits for
// the store's group, or when the CTA ends. If a CTA has too many copies in flight, the simulator
// completes the oldest copy. A function that returns false has reported a `Finding` (a fault of the
// kernel).
//
// Example: if (!copies.issue(w, in, mask)) return false;
#pragma once

#include "ptx/bulk/bulk_checks.h"
#include "ptx/bulk/bulk_reader.h"
#include "ptx/bulk/bulk_shared.h"
#include "ptx/cta/cta_state.h"
#include "ptx/cta/mbarrier_phases.h"
#include "ptx/cta/warp_scheduler.h"

namespace cutegen::ptx {

class BulkUnit {
 public:
  BulkUnit(CtaState& cta, WarpScheduler& scheduler, MbarrierPhases& phases)
      : cta_(cta),
        scheduler_(scheduler),
        phases_(phases),
        checks_(cta),
        reader_(cta, checks_),
        shared_(cta) {}
  bool issue(Warp& w, const Inst& in, uint32_t mask);
  void commit(const Warp& w, uint32_t mask) { cta_.bulk.commit(w.index, mask); }
  // cp.async.bulk.wait_group{.read}
  bool wait(Warp& w, const Inst& in, uint32_t mask);
  // Delivers copies that the mbarrier counts, oldest first, until the phase of the mbarrier
  // completes.
  bool deliver_to(Warp& w, uint64_t mbarrier);
  // Completes all copies. Call drain() when all threads have ended.
  bool drain();

 private:
  bool issue_lane(Warp& w, const Inst& in, int lane);
  bool store(Warp& w, const Inst& in, BulkCopy c);
  // load() copies to one CTA of the cluster, and multicast() copies to several CTAs.
  bool load(Warp& w, const Inst& in, BulkCopy c);
  bool multicast(Warp& w, const Inst& in, uint16_t ctas, const BulkCopy& c);
  bool send(Warp& w, const Inst& in, CtaState& owner, BulkCopy c);
  bool hold(Warp& w, CtaState& owner, BulkCopy c);
  // `index` is the index of the copy in the owner's CtaState::bulk. complete() removes this copy.
  bool complete_in(CtaState& owner, size_t index);
  bool complete(size_t index);
  bool arrive(BulkCopy& c);
  void read_source(BulkCopy& c);

  CtaState& cta_;
  WarpScheduler& scheduler_;
  MbarrierPhases& phases_;
  BulkChecks checks_;
  BulkReader reader_;
  BulkShared shared_;
};

}  // namespace cutegen::ptx
