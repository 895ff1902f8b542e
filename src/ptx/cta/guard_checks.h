// SPDX-License-Identifier: Apache-2.0
// Reports ordinary accesses to bytes of shared memory that a copy in flight or an mbarrier uses
// (ptx/ops/shared_guard.h).
//
// Contract: call check_guard() before an access to shared memory if SharedGuard::any() returns
// true. check_guard() returns false if it has reported a `Finding` (a fault of the kernel).
//
// Example: if (cta.guard.any() && !check_guard(cta, cta, access)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

// `owner` is the CTA whose shared memory `cta` accesses.
bool check_guard(CtaState& cta, const CtaState& owner, const WarpAccess& a);
// Reports the copy or mbarrier that uses some of the bytes [from, to). `what` describes the faulty
// access, such as "read of 4 bytes at".
void report_held(CtaState& cta, const CtaState& owner, const Warp& w, int lane,
                 const std::string& what, uint64_t from, uint64_t to);

}  // namespace cutegen::ptx
