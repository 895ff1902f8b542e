// SPDX-License-Identifier: Apache-2.0
// WgmmaChecks: reports accesses to registers and shared memory that unfinished wgmma instructions
// use.
//
// Contract: use a WgmmaChecks object only if CtaState::wgmma and CtaState::races are set. A
// function that returns false has reported a `Finding` (a fault of the kernel). A mov from a
// register is not an access, because the assembler may give source and target of a mov the same
// machine register. The target of a mov inherits the state of its source.
//
// Example: if (!checks.follow(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class WgmmaChecks {
 public:
  explicit WgmmaChecks(CtaState& cta) : cta_(cta) {}
  // Call follow() before an instruction with Inst::watched that is not a wgmma.mma_async.
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  // Call product() before a wgmma.mma_async, to check that its registers are fenced and that no
  // unfinished wgmma uses these registers, and to mark the registers as in use.
  bool product(const Warp& w, const Inst& in, const WgmmaOp& op);
  // Checks that a write to the shared memory of `owner` does not change bytes that an unfinished
  // wgmma.mma_async reads.
  bool operands(const WarpAccess& a, const CtaState& owner);

 private:
  bool unused(const Warp& w, int32_t slot, const char* verb);
  bool fenced(const Warp& w, const Inst& in, const WgmmaOp& op);
  bool same_shape(const Warp& w, const Inst& in, const WgmmaOp& op);
  bool surely_fine(const Warp& w, const Inst& in, const WgmmaOp& op);
  void report(const Warp& w, const WgmmaState::Use& use, const char* verb);

  CtaState& cta_;
};

}  // namespace cutegen::ptx
