// SPDX-License-Identifier: Apache-2.0
// Checks a launch against the limits of its GPU before anything runs.
//
// Contract: if a launch exceeds a limit, check_launch() returns a user error that names the limit,
// the value and the place in the plan. The device itself checks registers later, because only the
// device knows the kernel's register count.
//
// Example: CG_CHECK(check_launch(launch, entry, device, "plan.json#/steps/0"));
#pragma once

#include "core/program.h"

namespace cutegen {

Result<void> check_launch(const Launch& launch, const EntryFacts& entry, const DeviceFacts& device,
                          const std::string& where);
// Returns how many blocks of the launch fit on one SM, given the SM's limits for blocks, threads
// and shared memory.
int64_t resident_blocks(const Launch& launch, const EntryFacts& entry, const DeviceFacts& device);

inline constexpr int64_t kReservedSharedBytes =
    1024;  // shared memory that CUDA reserves per block on sm_80 and newer

}  // namespace cutegen
