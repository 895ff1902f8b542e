// SPDX-License-Identifier: Apache-2.0
// MbarrierPhases: applies arrivals of threads and of copies to an mbarrier of the cluster.
//
// Contract: when a phase completes, the warps that wait for it wake up. Accesses before the
// arrivals are then ordered before the accesses of these warps (ptx/checks/clocks.h). `owner` is
// the CTA whose shared memory has the mbarrier. A function that returns false (or nullptr) has
// reported a finding for this CTA at the warp's current instruction.
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
  // Removes the rank from an address in shared memory, and returns the CTA of that rank.
  CtaState* owner_of(const Warp& w, int lane, uint64_t& at);
  // Checks that the addresses are aligned and inside shared memory.
  bool valid_address(Warp& w, uint32_t mask, const AddressSummary& sum, const uint64_t* at);
  // Checks that there is an initialised mbarrier at the address.
  bool live(const Warp& w, int lane, const CtaState& owner, uint64_t at);
  // For the mbarrier of a bulk copy: makes both checks above, and checks that the async proxy sees
  // the mbarrier.
  bool ready(Warp& w, int lane, const CtaState& owner, uint64_t at);
  // Call it when a copy has delivered bytes.
  bool complete(const Warp& w, int lane, CtaState& owner, uint64_t at, int64_t bytes);
  // Call it when a thread arrives with release semantics.
  void release(const Warp& w, CtaState& owner, uint64_t at);
  // Ends the phase if no arrival and no byte is outstanding. Call it after each arrival.
  static void settle(CtaState& owner, uint64_t at, Mbarrier& b);
  void fail(const Warp& w, int lane, const CtaState& owner, uint64_t at, const std::string& what);

 private:
  CtaState& cta_;
};

}  // namespace cutegen::ptx
