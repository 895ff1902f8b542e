// SPDX-License-Identifier: Apache-2.0
// printf and assert in a kernel. Nobody reads a kernel's output, so each call is a finding.
//
// Contract: the finding has the text that lane `lane` would print, sanitised and of limited length.
// A format or argument that is not mapped becomes "(unmapped)".
//
// Example: report_host_call(cta, w, in, lane);  // "the kernel prints: x = 3"
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

void report_host_call(CtaState& cta, const Warp& w, const Inst& in, int lane);

}  // namespace cutegen::ptx
