// SPDX-License-Identifier: Apache-2.0
// UndefinedChecks: reports uses of undefined values (ptx/checks/undefined.h).
//
// Contract: use an UndefinedChecks object only if Hazards::undefined is set. A function that
// returns false has reported a `Finding` (a fault of the kernel).
//
// Example: if (!undefined.follow(w, in, mask)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

class UndefinedChecks {
 public:
  explicit UndefinedChecks(CtaState& cta) : cta_(cta) {}
  // Call follow() before each instruction, to mark the instruction's results as undefined if they
  // depend on undefined values.
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  // Call note() before an access to memory. `state` has an entry for each word, `lanes` are the
  // lanes to examine, and `left`, if set, is the number of words that are still unwritten.
  void note(const WarpAccess& a, uint32_t lanes, uint8_t* state, size_t* left,
            const Origin& origin);
  // Call stored() before a store to global memory, to check that the stored value is defined: other
  // kernels may read the value.
  bool stored(const WarpAccess& a, const Buffer& b);

 private:
  Undefined& undefined() { return *cta_.hazards->undefined; }
  Finding finding(const Origin& o, const std::string& what) const;

  CtaState& cta_;
};

}  // namespace cutegen::ptx
