// SPDX-License-Identifier: Apache-2.0
// UndefinedChecks: reports uses of undefined values (ptx/checks/undefined.h).
//
// Contract: call only if CtaState::hazards looks for undefined values. A function that returns
// false has reported a finding.
//
// Example: if (!undefined.follow(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class UndefinedChecks {
 public:
  explicit UndefinedChecks(CtaState& cta) : cta_(cta) {}
  // Call it before each instruction: tracks what its results depend on.
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  // Call it before an access to memory. state: by word. lanes: the lanes to examine. left: the
  // number of words that nobody has written yet; may be nullptr.
  void note(const WarpAccess& a, uint32_t lanes, uint8_t* state, size_t* left,
            const Origin& origin);
  // Call it before a store to global memory: other kernels may read the stored value, so it must
  // not be undefined.
  bool stored(const WarpAccess& a, const Buffer& b);

 private:
  Undefined& undefined() { return *cta_.hazards->undefined; }
  Finding finding(const Origin& o, const std::string& what) const;

  CtaState& cta_;
};

}  // namespace cutegen::ptx
