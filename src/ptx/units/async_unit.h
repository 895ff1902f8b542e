// SPDX-License-Identifier: Apache-2.0
// AsyncUnit: copies from global to shared memory that arrive later (cp.async).
//
// Contract: issue() reads the source at once and keeps the bytes. When the warp waits for their
// group, the lanes that issued the copy store them to shared memory. A function that returns false
// has reported a finding.
//
// Example: if (!async.issue(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/decode/forms.h"
#include "ptx/units/memory_unit.h"

namespace cutegen::ptx {

class AsyncUnit {
 public:
  AsyncUnit(CtaState& cta, MemoryUnit& memory)
      : cta_(cta), memory_(memory), addresses_(forms().addresses) {}
  bool issue(Warp& w, const Inst& in, uint32_t mask);
  // Makes the lanes' copies since their last commit a group.
  void commit(const Warp& w, uint32_t mask) { cta_.copies.of(w.index).commit(mask); }
  // Completes the lanes' groups until Inst::imm groups are left.
  bool wait(Warp& w, const Inst& in, uint32_t mask);
  // Completes the copies that an arrival waits for.
  bool complete(const AsyncArrival& arrival);

 private:
  bool fetch(Warp& w, const Inst& in, uint32_t mask);
  bool fetch_part(Warp& w, const Inst& in, uint32_t lanes, const uint32_t* sizes);
  bool deliver(Warp& w, const AsyncCopy& copy);

  CtaState& cta_;
  MemoryUnit& memory_;
  AddressFn addresses_;
};

}  // namespace cutegen::ptx
