// SPDX-License-Identifier: Apache-2.0
// Which metrics ncu is asked for, and what they are called in a profile.
//
// Contract: a metric that came with another unit than expected is left out. What both a GPU and the
// simulator count has one name; docs/profile.md lists them all.
//
// Example: for (const NcuKernel& k : report.kernels)
// profile.kernels.push_back(measured_profile(k));
#pragma once

#include <string>
#include <vector>

#include "core/profile.h"
#include "toolchain/ncu_report.h"

namespace cutegen::eval {

std::vector<std::string> ncu_metrics();
KernelProfile measured_profile(const toolchain::NcuKernel& kernel);

}  // namespace cutegen::eval
