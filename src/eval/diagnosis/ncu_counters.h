// SPDX-License-Identifier: Apache-2.0
// The metrics that cutegen requests from ncu, and their names in a profile.
//
// Contract: drops a metric that has an unexpected unit. A quantity that both a GPU and the
// simulator count has one name; docs/profile.md lists all names.
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
