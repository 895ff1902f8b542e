// SPDX-License-Identifier: Apache-2.0
// Chooses the lanes of an access that a check must examine.
//
// Contract: if several lanes access the same bytes, distinct_lanes() may return only one of these
// lanes.
//
// Example: for (uint32_t m = distinct_lanes(mask, summary, at); m; m &= m - 1) ...
#pragma once

#include <cstdint>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {

uint32_t distinct_lanes(uint32_t mask, const AddressSummary& s, const uint64_t* at);

}  // namespace cutegen::ptx
