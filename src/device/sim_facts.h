// SPDX-License-Identifier: Apache-2.0
// Returns facts about a simulated GPU without creating a simulator.
//
// Contract: simulated_gpu() accepts "sim:NAME" if NAME is a known GPU. For any other name, it
// returns a user error that lists the known GPUs.
//
// Example:
//   CG_TRY(GpuSpec gpu, simulated_gpu("sim:h200")); DeviceFacts f = sim_facts("sim:h200", gpu);
#pragma once

#include "device/device.h"
#include "gpu/spec.h"

namespace cutegen::device {

Result<GpuSpec> simulated_gpu(const DeviceName& name);
DeviceFacts sim_facts(const std::string& name, const GpuSpec& gpu);

}  // namespace cutegen::device
