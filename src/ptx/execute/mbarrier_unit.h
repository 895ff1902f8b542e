// SPDX-License-Identifier: Apache-2.0
// MbarrierUnit: executes mbarrier instructions, and suspends warps that wait at an mbarrier.
//
// Contract: a try_wait suspends its lanes if the phase is not complete. If other lanes of the warp
// can run, or if Job::order is not `in_order`, a try_wait may instead return false, as the ISA
// allows. If all lanes of a warp wait at an mbarrier, the warp's state is Warp::State::waiting and
// its `barrier` is kAtMbarrier until the phase completes. WarpScheduler::time_out_waits() ends all
// waits, and the try_wait instruction of each wait returns false. A function that returns false has
// reported a `Finding` (a fault of the kernel).
//
// Example: if (mbarriers.execute(w, in, mask) == MbarrierUnit::Next::failed) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_scheduler.h"
#include "ptx/decode/forms.h"
#include "ptx/execute/copy_arrivals.h"

namespace cutegen::ptx {

class MbarrierUnit {
 public:
  // What the warp does next.
  enum class Next { on, yield, wait, failed };
  MbarrierUnit(CtaState& cta, WarpScheduler& scheduler, MbarrierPhases& phases, BulkUnit& copies,
               AsyncUnit& async)
      : cta_(cta),
        scheduler_(scheduler),
        phases_(phases),
        arrivals_(cta, phases, copies, async),
        addresses_(forms().addresses) {}
  // Advances the warp's pc, unless the warp must execute the instruction again.
  Next execute(Warp& w, const Inst& in, uint32_t mask);

 private:
  // For each lane, the CTA that has the mbarrier, and the mbarrier's offset in its shared memory.
  struct Places {
    CtaState* owner[32];
    uint64_t at[32];
  };
  // Returns false if an address is misaligned or outside shared memory.
  bool places(Warp& w, const Inst& in, uint32_t mask, Places& to);
  bool change(Warp& w, const Inst& in, int lane, CtaState& owner, uint64_t at);
  bool arrive(Warp& w, const Inst& in, int lane, CtaState& owner, uint64_t at);
  Next wait(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at);
  // Returns the lanes whose phase is complete, or nullopt if passed() reported a `Finding`.
  std::optional<uint32_t> passed(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at);
  Next suspend(Warp& w, const Inst& in, uint32_t mask, uint32_t done, const uint64_t* at);

  CtaState& cta_;
  WarpScheduler& scheduler_;
  MbarrierPhases& phases_;
  CopyArrivals arrivals_;
  AddressFn addresses_;
};

}  // namespace cutegen::ptx
