// SPDX-License-Identifier: Apache-2.0
// WarpAccess: one memory access by lanes of a warp, with the lanes' addresses.
//
// Contract: `at` has 32 entries, which are valid for the lanes in `mask`. `sum` summarises the
// valid entries of `at`. The addresses are offsets in their state space, except that addresses in
// global memory are the addresses that the kernel uses.
//
// Example: WarpAccess a{w, in, mask, addresses(...), at}; checks.shared(a);
#pragma once

#include <algorithm>
#include <bit>

#include "ptx/cta/warp.h"
#include "ptx/machine/inst.h"

namespace cutegen::ptx {

struct WarpAccess {
  Warp& warp;
  const Inst& in;
  uint32_t mask;
  AddressSummary sum;
  const uint64_t* at;

  uint64_t bytes() const { return uint64_t(in.size) * in.vec; }  // per lane
  int thread(int lane) const { return warp.index * 32 + lane; }
};

inline AddressSummary summarize(const uint64_t* at, uint32_t mask) {
  AddressSummary s;
  s.low = ~uint64_t{0};
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint64_t a = at[std::countr_zero(m)];
    s.low = std::min(s.low, a), s.high = std::max(s.high, a), s.bits |= a;
  }
  s.uniform = s.low == s.high;
  return s;
}

inline WarpAccess access_of(Warp& warp, const Inst& in, uint32_t lanes, const uint64_t* at) {
  return {.warp = warp, .in = in, .mask = lanes, .sum = summarize(at, lanes), .at = at};
}

}  // namespace cutegen::ptx
