// SPDX-License-Identifier: Apache-2.0
// Checks a launch against the limits of its GPU before anything runs.
//
// Contract: a launch that exceeds a limit is a user error that names the limit, the value and the
// place in the plan. The check does not cover registers: the device knows how many a kernel has,
// and checks them itself.
//
// Example: CG_CHECK(check_launch(launch, entry, device, "plan.json#/steps/0"));
#pragma once

#include "core/program.h"

namespace cutegen {

Result<void> check_launch(const Launch& launch, const EntryFacts& entry, const DeviceFacts& device,
                          const std::string& where);
// Blocks of this launch that fit on one SM at once, by threads and shared memory.
int64_t resident_blocks(const Launch& launch, const EntryFacts& entry, const DeviceFacts& device);

inline constexpr int64_t kReservedSharedBytes =
    1024;  // CUDA reserves this per block, from sm_80 on

}  // namespace cutegen
