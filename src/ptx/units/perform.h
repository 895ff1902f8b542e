// SPDX-License-Identifier: Apache-2.0
// Executes a load, store or atomic of a warp, and notes whether it may be a poll.
//
// Contract: the caller has checked that all addresses are mapped. Address 0 is at `zero`.
//
// Example: perform(cta, scheduler, access, cta.shared.data());
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"
#include "ptx/cta/warp_scheduler.h"

namespace cutegen::ptx {

void perform(CtaState& cta, WarpScheduler& scheduler, const WarpAccess& a, std::byte* zero);

}  // namespace cutegen::ptx
