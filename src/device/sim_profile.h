// SPDX-License-Identifier: Apache-2.0
// Builds the profile of a simulated launch: counters and modelled times under public names.
//
// Contract: docs/profile.md defines the public names. The names of modelled times begin with
// "modelled_ns.". The profile lists the most expensive source lines, at most 64.
//
// Example:
//   kernels.push_back(sim_profile("relu", report, time));
#pragma once

#include "core/profile.h"
#include "device/device.h"
#include "ptx/model/model_time.h"

namespace cutegen::device {

LaunchTrace sim_trace(const Launch& step, const ptx::LaunchReport& report);
KernelProfile sim_profile(const std::string& kernel, const ptx::LaunchReport& report,
                          const ptx::ModelledTime& time);

}  // namespace cutegen::device
