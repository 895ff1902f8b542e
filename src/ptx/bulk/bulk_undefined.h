// SPDX-License-Identifier: Apache-2.0
// What copies of the asynchronous proxy do to the check for undefined values.
//
// Contract: call these only if the checks of the CTA look for undefined values (sources_defined()
// also without). A function that returns false has reported a finding.
//
// Example: if (!sources_defined(cta, w, copy)) return false;
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// A load has arrived: shared memory is now as defined as its source.
void define_target(CtaState& cta, const BulkCopy& c);
// Checks that a store to an output has no words that nobody wrote.
bool sources_defined(CtaState& cta, const Warp& w, const BulkCopy& c);

}  // namespace cutegen::ptx
