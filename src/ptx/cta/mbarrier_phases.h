// SPDX-License-Identifier: Apache-2.0
// MbarrierPhases: what arrivals of threads and of copies do to an mbarrier of the CTA.
//
// Contract: a completed phase wakes the warps that wait for it and passes on what happened before.
// A function that returns false has reported a finding at the warp's current instruction.
//
// Example: if (!phases.complete(w, lane, at, bytes)) return false;
#pragma once

#include <string>

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class MbarrierPhases {
 public:
  explicit MbarrierPhases(CtaState& cta) : cta_(cta) {}
  // Takes the rank out of an address in this CTA's shared memory. False: it names another CTA,
  // which is not simulated.
  bool own_place(uint64_t& at);
  // Checks that an mbarrier may lie there: aligned, and inside shared memory.
  bool valid_address(Warp& w, uint32_t mask, const AddressSummary& sum, const uint64_t* at);
  // Checks that an initialised mbarrier lies there.
  bool live(const Warp& w, int lane, uint64_t at);
  // A copy has delivered bytes.
  bool complete(const Warp& w, int lane, uint64_t at, int64_t bytes);
  // Ends the phase if nothing is missing any more; call it after each arrival.
  void settle(uint64_t at, Mbarrier& b);
  bool fail(const Warp& w, int lane, uint64_t at, const std::string& what);

 private:
  CtaState& cta_;
};

}  // namespace cutegen::ptx
