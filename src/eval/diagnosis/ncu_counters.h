// SPDX-License-Identifier: Apache-2.0
// The metrics that cutegen requests from ncu (Nsight Compute), and the names of these metrics in a
// profile.
//
// Contract: measured_profile() ignores a metric that has an unexpected unit. If ncu and the
// simulator count the same quantity, their counters have the same name. docs/profile.md lists all
// names.
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
