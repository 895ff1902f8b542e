// SPDX-License-Identifier: Apache-2.0
// WgmmaChecks: reports accesses to registers and shared memory that unfinished wgmma instructions
// use.
//
// Contract: call only if CtaState::wgmma is set and the launch looks for races. A function that
// returns false has reported a finding. A copy of a register (mov) is not an access, because the
// assembler may give both the same machine register. The copy inherits the original's state.
//
// Example: if (!checks.follow(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class WgmmaChecks {
 public:
  explicit WgmmaChecks(CtaState& cta) : cta_(cta) {}
  // Call it before an instruction that is Inst::watched and not a product.
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  // Call it before a product: checks that its registers are fenced and not in use, and then marks
  // them as in use.
  bool product(const Warp& w, const Inst& in, const WgmmaOp& op);
  // Checks that a write to `owner`'s shared memory does not touch bytes that an unfinished product
  // reads.
  bool operands(const WarpAccess& a, const CtaState& owner);

 private:
  bool unused(const Warp& w, int32_t slot, const char* verb);
  bool fenced(const Warp& w, const Inst& in, const WgmmaOp& op);
  bool same_shape(const Warp& w, const Inst& in, const WgmmaOp& op);
  void report(const Warp& w, const WgmmaState::Use& use, const char* verb);

  CtaState& cta_;
};

}  // namespace cutegen::ptx
