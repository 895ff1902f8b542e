// SPDX-License-Identifier: Apache-2.0
// The profile of a simulated launch: counters and modelled time under the names that people see.
//
// Contract: names are those of docs/profile.md; modelled terms begin with "modelled_ns.". Lines are
// the ones that cost most, at most 64. Example: kernels.push_back(sim_profile("relu", report,
// time));
#pragma once

#include "core/profile.h"
#include "device/device.h"
#include "ptx/model/model_time.h"

namespace cutegen {

[[nodiscard]] LaunchTrace sim_trace(const Launch& step, const ptx::LaunchReport& report);
[[nodiscard]] KernelProfile sim_profile(const std::string& kernel, const ptx::LaunchReport& report,
                                        const ptx::ModelledTime& time);

}  // namespace cutegen
