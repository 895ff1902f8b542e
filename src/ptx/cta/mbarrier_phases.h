// SPDX-License-Identifier: Apache-2.0
// MbarrierPhases: applies arrivals of threads and copies to an mbarrier of any CTA in the cluster.
//
// Contract: when a phase of an mbarrier completes, the warps that wait for the phase can run again.
// For the race checks, accesses that a thread made before its arrival happened before later
// accesses of the warps that waited (ptx/checks/clocks.h). `owner` is the CTA whose shared memory
// contains the mbarrier. A function that returns false or nullptr has reported a `Finding` (a fault
// of the kernel) for this CTA at the warp's current instruction.
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
  // Checks that an initialised mbarrier is at the address, and that a synchronisation orders its
  // initialisation before this access.
  bool live(const Warp& w, int lane, const CtaState& owner, uint64_t at);
  // Checks the mbarrier of a bulk copy: calls valid_address() and live(), and checks that the
  // initialised mbarrier is visible to the async proxy.
  bool ready(Warp& w, int lane, const CtaState& owner, uint64_t at);
  // Call complete() when a copy has delivered `bytes` bytes.
  bool complete(const Warp& w, int lane, CtaState& owner, uint64_t at, int64_t bytes);
  // Call release() when a thread arrives with release semantics.
  void release(const Warp& w, CtaState& owner, uint64_t at);
  // Ends the phase if no arrival and no byte is outstanding. Call settle() after each arrival.
  static void settle(CtaState& owner, uint64_t at, Mbarrier& b);
  void fail(const Warp& w, int lane, const CtaState& owner, uint64_t at, const std::string& what);

 private:
  // Whether the initialisation of an mbarrier happened before the warp's next access.
  bool known(const Warp& w, const CtaState& owner, const Mbarrier& b) const;

  CtaState& cta_;
};

}  // namespace cutegen::ptx
