// SPDX-License-Identifier: Apache-2.0
// Reports printf and assert in a kernel. Nobody reads a kernel's output, so each call is a finding.
//
// Contract: the finding has the text that `lane` would print, sanitised and shortened. If the
// address of a format or argument is unmapped, the text says "(unmapped)".
//
// Example: report_host_call(cta, w, in, lane);  // "the kernel prints: x = 3"
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

void report_host_call(CtaState& cta, const Warp& w, const Inst& in, int lane);

}  // namespace cutegen::ptx
