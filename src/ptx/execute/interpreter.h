// SPDX-License-Identifier: Apache-2.0
// Interpreter: executes the instructions of a warp. The interpreter passes each instruction to the
// class that implements it.
//
// Contract: run() returns when the warp has to wait, has ended, yields, or fails. If run() returns
// `failed`, CtaState::status says why.
//
// Example: while (interpreter.run(w) == Interpreter::Step::yield) {}
#pragma once

#include "ptx/cta/barriers.h"
#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_scheduler.h"
#include "ptx/execute/mbarrier_unit.h"
#include "ptx/units/async_unit.h"
#include "ptx/units/cluster_unit.h"
#include "ptx/units/collectives.h"
#include "ptx/units/cta_checks.h"
#include "ptx/units/matrix_unit.h"
#include "ptx/units/memory_unit.h"
#include "ptx/units/wgmma_unit.h"

namespace cutegen::ptx {

class Interpreter {
 public:
  enum class Step { yield, waiting, done, failed };
  Interpreter(CtaState& cta, Barriers& barriers, WarpScheduler& scheduler)
      : cta_(cta),
        barriers_(barriers),
        scheduler_(scheduler),
        checks_(cta),
        memory_(cta, scheduler, checks_),
        async_(cta, memory_),
        matrix_(cta, scheduler, memory_),
        wgmma_(cta, scheduler, checks_),
        cluster_(cta, scheduler),
        phases_(cta),
        bulk_(cta, scheduler, phases_),
        mbarriers_(cta, scheduler, phases_, bulk_, async_),
        collectives_(cta, scheduler) {}
  Step run(Warp& w);
  // Call ended() when a warp has ended. Returns false if other warps still execute wgmma.
  bool ended(const Warp& w) { return wgmma_.ended(w); }
  // Completes the copies in flight when all warps have ended. Returns false after a reported fault.
  bool drain();

 private:
  // execute() and barrier() return false if the CTA must not continue, as after a `Finding`.
  bool execute(Warp& w, const Inst& in, uint32_t mask);
  bool barrier(Warp& w, const Inst& in, uint32_t mask);
  void fence(Warp& w, const Inst& in, uint32_t mask);

  CtaState& cta_;
  Barriers& barriers_;
  WarpScheduler& scheduler_;
  CtaChecks checks_;
  MemoryUnit memory_;
  AsyncUnit async_;
  MatrixUnit matrix_;
  WgmmaUnit wgmma_;
  ClusterUnit cluster_;
  MbarrierPhases phases_;
  BulkUnit bulk_;
  MbarrierUnit mbarriers_;
  Collectives collectives_;
};

}  // namespace cutegen::ptx
