// SPDX-License-Identifier: Apache-2.0
// Checks bulk copies for undefined values.
//
// Contract: call define_target() only if the CTA's checks look for undefined values. A function
// that returns false has reported a finding.
//
// Example: if (!sources_defined(cta, w, copy)) return false;
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Call it when a load has arrived: marks shared memory as defined where the source is defined.
void define_target(CtaState& cta, const BulkCopy& c);
// Checks that a store to an output reads only words that have been written.
bool sources_defined(CtaState& cta, const Warp& w, const BulkCopy& c);

}  // namespace cutegen::ptx
