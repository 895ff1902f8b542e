// SPDX-License-Identifier: Apache-2.0
// Executes setmaxnreg, by which warps release registers to a pool of their CTA and request
// registers from this pool.
//
// Contract: see "setmaxnreg" in the PTX ISA. If a warp requests more registers than the pool has,
// the warp waits until other warps release registers. When a CTA begins, each thread has .maxnreg
// registers or, without .maxnreg, an equal share of the register file.
//
// Example: set_registers(cta, w, in); if (w.state == Warp::State::waiting) ...
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Returns the number of registers per thread when the CTA begins.
int64_t first_registers(const Program& p, size_t warps);
void set_registers(CtaState& cta, Warp& w, const Inst& in);

}  // namespace cutegen::ptx
