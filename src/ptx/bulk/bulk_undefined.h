// SPDX-License-Identifier: Apache-2.0
// Checks bulk copies for undefined values.
//
// Contract: call define_target() only if the checks for undefined values are on. A function that
// returns false has reported a `Finding` (a fault of the kernel).
//
// Example: if (!sources_defined(cta, w, copy)) return false;
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Call this function when a load has arrived. It marks a word of shared memory as defined if the
// source of the word is defined.
void define_target(CtaState& cta, const BulkCopy& c);
// Checks that a store to an output reads no undefined words.
bool sources_defined(CtaState& cta, const Warp& w, const BulkCopy& c);

}  // namespace cutegen::ptx
