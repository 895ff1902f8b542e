// SPDX-License-Identifier: Apache-2.0
// MbarrierPhases: what arrivals of threads and of copies do to an mbarrier of the cluster.
//
// Contract: a completed phase wakes the warps that wait for it and passes on what happened before.
// `owner` is the CTA whose shared memory has the mbarrier. A function that returns false (or
// nullptr) has reported a finding of this CTA at the warp's current instruction.
//
// Example: if (!phases.complete(w, lane, cta, at, bytes)) return false;
#pragma once

#include <string>

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class MbarrierPhases {
 public:
  explicit MbarrierPhases(CtaState& cta) : cta_(cta) {}
  // Takes the rank out of an address in shared memory. Returns the CTA that has the memory.
  CtaState* owner_of(const Warp& w, int lane, uint64_t& at);
  // Checks that an mbarrier may lie there: aligned, and inside shared memory.
  bool valid_address(Warp& w, uint32_t mask, const AddressSummary& sum, const uint64_t* at);
  // Checks that an initialised mbarrier lies there.
  bool live(const Warp& w, int lane, const CtaState& owner, uint64_t at);
  // Both, for one lane.
  bool ready(Warp& w, int lane, const CtaState& owner, uint64_t at);
  // A copy has delivered bytes.
  bool complete(const Warp& w, int lane, CtaState& owner, uint64_t at, int64_t bytes);
  // A thread arrives with release semantics.
  void release(const Warp& w, CtaState& owner, uint64_t at);
  // Ends the phase if nothing is missing any more; call it after each arrival.
  static void settle(CtaState& owner, uint64_t at, Mbarrier& b);
  bool fail(const Warp& w, int lane, const CtaState& owner, uint64_t at, const std::string& what);

 private:
  CtaState& cta_;
};

}  // namespace cutegen::ptx
