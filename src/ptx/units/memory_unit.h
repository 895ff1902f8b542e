// SPDX-License-Identifier: Apache-2.0
// MemoryUnit: executes a warp's loads, stores and atomics in every space.
//
// Contract: the unit checks the whole access before it executes it: alignment, bounds, permission,
// then races and undefined values. It counts the access, and notes if it may be a poll. A function
// that returns false has reported a finding.
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
  // Executes a load, store or atomic.
  bool access(Warp& w, const Inst& in, uint32_t mask);
  // Writes a copy that arrives to shared memory. Other copies may still write the same bytes.
  bool access_shared(const WarpAccess& a);

 private:
  bool access_at(const WarpAccess& a, Space space);
  bool several_spaces(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at);
  // cluster(): accesses shared memory of several CTAs of the cluster. remote(): of one CTA.
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
  // The buffer that each instruction accessed last, by the low bits of its pc.
  const Buffer* last_[16] = {};
};

}  // namespace cutegen::ptx
