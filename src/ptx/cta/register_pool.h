// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: warps of a CTA release registers to a pool and request registers from it.
//
// Contract: PTX ISA, "setmaxnreg". If a warp asks for more than the pool has, it waits until others
// release some. Each thread begins with as many registers as the launch allows: .maxnreg, or an
// equal share of the register file.
//
// Example: set_registers(cta, w, in); if (w.state == Warp::State::waiting) ...
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Registers per thread when the CTA begins.
int64_t first_registers(const Program& p, size_t warps);
void set_registers(CtaState& cta, Warp& w, const Inst& in);

}  // namespace cutegen::ptx
