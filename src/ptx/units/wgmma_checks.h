// SPDX-License-Identifier: Apache-2.0
// WgmmaChecks: findings about what unfinished wgmma instructions use.
//
// Contract: call only if CtaState::wgmma is set and the launch looks for races. A function that
// returns false has reported a finding. Copies of a register (mov) are no accesses: the assembler
// gives both the same place. They pass on what they copy.
//
// Example: if (!checks.follow(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class WgmmaChecks {
 public:
  explicit WgmmaChecks(CtaState& cta) : cta_(cta) {}
  // Before an instruction that is Inst::watched and no product.
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  // Before a product: its registers are not in use and fenced. Then they are in use.
  bool product(const Warp& w, const Inst& in, const WgmmaOp& op);
  // A write of the shared memory of `owner` must not touch what a product still reads.
  bool operands(const WarpAccess& a, const CtaState& owner);

 private:
  bool unused(const Warp& w, int32_t slot, const char* verb);
  bool fenced(const Warp& w, const Inst& in, const WgmmaOp& op);
  bool same_shape(const Warp& w, const Inst& in, const WgmmaOp& op);
  bool report(const Warp& w, const WgmmaState::Use& use, const char* verb);

  CtaState& cta_;
};

}  // namespace cutegen::ptx
