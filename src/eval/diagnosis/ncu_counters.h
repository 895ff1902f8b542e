// SPDX-License-Identifier: Apache-2.0
// The metrics that cutegen requests from ncu (Nsight Compute), and their names in a profile.
//
// Contract: ignores a metric that has an unexpected unit. If the simulator counts the same
// quantity, the counter has the same name. docs/profile.md lists all names.
//
// Example:
//   for (const NcuKernel& k : report.kernels) profile.kernels.push_back(measured_profile(k));
#pragma once

#include <string>
#include <vector>

#include "core/profile.h"
#include "toolchain/ncu_report.h"

namespace cutegen::eval {

std::vector<std::string> ncu_metrics();
KernelProfile measured_profile(const toolchain::NcuKernel& kernel);

}  // namespace cutegen::eval
