// SPDX-License-Identifier: Apache-2.0
// AsyncUnit: executes cp.async, cp.async.commit_group and cp.async.wait_group.
//
// Contract: issue() reads the source at once and stores the bytes in CtaState::copies. wait()
// writes the bytes of completed groups to shared memory. A function that returns false has reported
// a `Finding` (a fault of the kernel).
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
  // Forms a group of the cp.async copies that the lanes have issued since their last commit.
  void commit(const Warp& w, uint32_t mask) { cta_.copies.of(w.index).commit(mask); }
  // Completes all cp.async groups of the lanes except the latest Inst::imm groups.
  bool wait(Warp& w, const Inst& in, uint32_t mask);
  // Completes the cp.async copies for which the mbarrier arrival `arrival` waits.
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
