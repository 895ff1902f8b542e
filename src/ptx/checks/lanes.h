// SPDX-License-Identifier: Apache-2.0
// Which lanes of an access a check has to look at.
//
// Contract: lanes that touch what another lane in the result touches may be left out.
//
// Example: for (uint32_t m = distinct_lanes(mask, summary, at); m; m &= m - 1) ...
#pragma once

#include <cstdint>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {

uint32_t distinct_lanes(uint32_t mask, const AddressSummary& s, const uint64_t* at);

}  // namespace cutegen::ptx
