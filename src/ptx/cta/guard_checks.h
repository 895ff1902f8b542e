// SPDX-License-Identifier: Apache-2.0
// Reports accesses to shared memory that a copy or an mbarrier uses (ptx/ops/shared_guard.h).
//
// Contract: call check_guard() before an access to shared memory, if the guard has any marks. It
// returns false after a finding.
//
// Example: if (cta.guard.any() && !check_guard(cta, cta, access)) return false;
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

// owner: the CTA whose shared memory `cta` accesses.
bool check_guard(CtaState& cta, const CtaState& owner, const WarpAccess& a);
// Reports the copy or mbarrier that uses some of the bytes [from, to). what: the faulty access,
// such as "read of 4 bytes at".
void report_held(CtaState& cta, const CtaState& owner, const Warp& w, int lane,
                 const std::string& what, uint64_t from, uint64_t to);

}  // namespace cutegen::ptx
