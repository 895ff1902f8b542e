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

// When a load has arrived, marks each word that the load wrote to shared memory as defined or
// undefined, like the source of the word.
void define_target(CtaState& cta, const BulkCopy& c);
// Checks that a bulk store to an output buffer reads no undefined words.
bool sources_defined(CtaState& cta, const Warp& w, const BulkCopy& c);

}  // namespace cutegen::ptx
