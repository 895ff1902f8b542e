// SPDX-License-Identifier: Apache-2.0
// RaceChecks: reports races (ptx/checks/*_races.h, ops/async_copy.h).
//
// Contract: call shared(), global() and lanes() only if CtaState::races is set. A function that
// returns false has reported a `Finding` (a fault of the kernel). A store that does not change
// memory never counts as a race.
//
// Example: if (!races.shared(access, lanes)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class RaceChecks {
 public:
  explicit RaceChecks(CtaState& cta) : cta_(cta) {}
  // `lanes`: the distinct_lanes() of the access; `owner`: the CTA whose memory the access uses.
  bool shared(const WarpAccess& a, uint32_t lanes, CtaState& owner);
  bool global(const WarpAccess& a, const Buffer& b, BufferShadow& shadow);
  // Call lanes() after a store that is not contiguous, to check that no two lanes have written
  // different values to one address. `b` is nullptr for a store to shared memory.
  bool lanes(const WarpAccess& a, const std::byte* zero, const Buffer* b);
  // Checks that an access to shared memory does not use bytes that a cp.async in flight will write.
  bool copies(const WarpAccess& a);

 private:
  bool settled(const WarpAccess& a, const Buffer& b, BufferShadow& shadow);
  bool report_shared(const WarpAccess& a, uint32_t bad, const CtaState& owner);
  void report_copy(const WarpAccess& a, int lane, int32_t pc);
  bool report_global(const WarpAccess& a, uint32_t bad, const Buffer& b);

  CtaState& cta_;
};

}  // namespace cutegen::ptx
