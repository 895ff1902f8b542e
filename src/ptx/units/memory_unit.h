// SPDX-License-Identifier: Apache-2.0
// MemoryUnit: executes loads, stores and atomics of a warp in all state spaces.
//
// Contract: before an access, MemoryUnit checks alignment, bounds and write permission, then races
// and undefined values. MemoryUnit also counts the access, and records whether the access may poll
// a word that another thread writes. A function that returns false has reported a `Finding` (a
// fault of the kernel).
//
// Example: if (!memory.access(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_scheduler.h"
#include "ptx/decode/forms.h"
#include "ptx/units/cta_checks.h"

namespace cutegen::ptx {

class MemoryUnit {
 public:
  MemoryUnit(CtaState& cta, WarpScheduler& scheduler, CtaChecks& checks)
      : cta_(cta), scheduler_(scheduler), checks_(checks), addresses_(forms().addresses) {}
  bool access(Warp& w, const Inst& in, uint32_t mask);
  // Writes the bytes of a completed cp.async to shared memory, even if other copies in flight will
  // write the same bytes.
  bool access_shared(const WarpAccess& a);

 private:
  bool access_at(const WarpAccess& a, Space space);
  bool several_spaces(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at);
  // cluster() accesses several CTAs' shared memory, and remote() one other CTA's shared memory.
  bool cluster(const WarpAccess& a);
  bool remote(const WarpAccess& a, uint64_t rank);
  bool local(const WarpAccess& a);
  bool global(const WarpAccess& a);
  bool several_buffers(const WarpAccess& a);
  bool in_buffer(const WarpAccess& a, const Buffer& b);

  CtaState& cta_;
  WarpScheduler& scheduler_;
  CtaChecks& checks_;
  AddressFn addresses_;
  // The last buffer that an instruction accessed, by the low bits of the instruction's pc.
  const Buffer* last_[16] = {};
};

}  // namespace cutegen::ptx
