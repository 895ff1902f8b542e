// SPDX-License-Identifier: Apache-2.0
// printf and assert in a kernel: nobody reads a kernel's output, so each is a finding.
//
// Contract: reports what lane `lane` would print, bounded and sanitised. A format or argument that
// is not mapped reads as "(unmapped)".
//
// Example: report_host_call(cta, w, in, lane);  // "the kernel prints: x = 3"
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

void report_host_call(CtaState& cta, const Warp& w, const Inst& in, int lane);

}  // namespace cutegen::ptx
