// SPDX-License-Identifier: Apache-2.0
// Moves the bytes of a load or store between a warp's registers and host memory.
//
// Contract: the caller has checked that all addresses are valid. `zero` is the host address of the
// simulated address 0.
//
// Example: transfer(access, shared.data());
#pragma once

#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

void transfer(const WarpAccess& a, std::byte* zero);

}  // namespace cutegen::ptx
