// SPDX-License-Identifier: Apache-2.0
// Facts about a simulated GPU that need no simulator.
//
// Contract: accepts "sim:NAME" for a known GPU. Any other name is a user error that lists them.
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
