// SPDX-License-Identifier: Apache-2.0
// Executes a load, store or atomic of a warp, and records whether this access may poll a word that
// another thread writes.
//
// Contract: the caller has checked that all addresses are valid. `zero` is the host address of the
// simulated address 0.
//
// Example: perform(cta, scheduler, access, cta.shared.data());
#pragma once

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"
#include "ptx/cta/warp_scheduler.h"

namespace cutegen::ptx {

void perform(CtaState& cta, WarpScheduler& scheduler, const WarpAccess& a, std::byte* zero);

}  // namespace cutegen::ptx
