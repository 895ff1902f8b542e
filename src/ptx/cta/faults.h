// SPDX-License-Identifier: Apache-2.0
// Findings of accesses that the machine refuses: out of bounds, misaligned, read-only, null.
//
// Contract: names the first lane of the access at fault and the reason. `space` is the space that
// the instruction names or its addresses lie in.
//
// Example: if (end > shared.size()) report_fault(cta, access, Space::shared);
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

void report_fault(CtaState& cta, const WarpAccess& a, Space space);

}  // namespace cutegen::ptx
