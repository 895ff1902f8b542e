// SPDX-License-Identifier: Apache-2.0
// Reports memory accesses at which a GPU would fault: out of bounds, misaligned, read-only, null.
//
// Contract: the `Finding` (the report of a fault) names the first faulty lane and the reason.
// `space` is the state space that the instruction names or, if the instruction uses generic
// addresses, the state space that contains these addresses.
//
// Example: if (end > shared.size()) report_fault(cta, access, Space::shared);
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

void report_fault(CtaState& cta, const WarpAccess& a, Space space);

}  // namespace cutegen::ptx
