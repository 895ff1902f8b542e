// SPDX-License-Identifier: Apache-2.0
// Reports accesses that the machine refuses: out of bounds, misaligned, read-only, null.
//
// Contract: the finding names the first faulty lane and the reason. `space` is the space that the
// instruction names, or the one that contains its addresses.
//
// Example: if (end > shared.size()) report_fault(cta, access, Space::shared);
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

void report_fault(CtaState& cta, const WarpAccess& a, Space space);

}  // namespace cutegen::ptx
