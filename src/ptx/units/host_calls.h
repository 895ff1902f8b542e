// SPDX-License-Identifier: Apache-2.0
// Reports printf and assert in a kernel as a `Finding` (a fault of the kernel), because the
// simulator does not show a kernel's output.
//
// Contract: the finding has the text that `lane` would print, sanitised and shortened. If the
// address of the format or of an argument is invalid, the text says "(unmapped)".
//
// Example: report_host_call(cta, w, in, lane);  // "the kernel prints: x = 3"
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

void report_host_call(CtaState& cta, const Warp& w, const Inst& in, int lane);

}  // namespace cutegen::ptx
