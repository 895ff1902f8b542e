// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: the registers of a CTA, which its warps hand over to each other.
//
// Contract: PTX ISA, "setmaxnreg". A warp that asks for more than the pool has waits until others
// release some. A CTA begins with the most registers a thread that its launch allows: what .maxnreg
// says, or an equal share of the register file.
//
// Example: set_registers(cta, w, in); if (w.state == Warp::State::waiting) ...
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Registers a thread at the beginning.
int64_t first_registers(const Program& p, size_t warps);
void set_registers(CtaState& cta, Warp& w, const Inst& in);

}  // namespace cutegen::ptx
