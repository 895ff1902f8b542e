// SPDX-License-Identifier: Apache-2.0
// MatrixUnit: executes mma, movmatrix, ldmatrix and stmatrix, which need all 32 lanes of a warp.
//
// Contract: lanes that arrive at the instruction early wait (Meet::parked) until all lanes have
// arrived. ldmatrix and stmatrix access shared memory like loads and stores of 16-byte rows.
//
// Example: if (matrix.execute(w, in, mask) == Meet::here) ++w.current.pc;
#pragma once

#include "ptx/cta/warp_scheduler.h"
#include "ptx/units/memory_unit.h"

namespace cutegen::ptx {

class MatrixUnit {
 public:
  MatrixUnit(CtaState& cta, WarpScheduler& scheduler, MemoryUnit& memory)
      : cta_(cta), scheduler_(scheduler), memory_(memory) {}
  Meet execute(Warp& w, const Inst& in, uint32_t mask);

 private:
  CtaState& cta_;
  WarpScheduler& scheduler_;
  MemoryUnit& memory_;
};

}  // namespace cutegen::ptx
