// SPDX-License-Identifier: Apache-2.0
// Adds remarks to a kernel's profile that follow from a GPU's hardware counters.
//
// Contract: the new remarks come before the existing remarks. If the profile lacks a counter, the
// function omits remarks that need this counter.
//
// Example: remark_on_measured(kernel); for (auto& r : kernel.remarks) print(r.message);
#pragma once

#include "core/profile.h"

namespace cutegen::eval {

void remark_on_measured(KernelProfile& kernel);

}  // namespace cutegen::eval
