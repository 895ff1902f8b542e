// SPDX-License-Identifier: Apache-2.0
// Remarks on a kernel from a GPU's own counters.
//
// Contract: puts the remarks in front of the existing ones. Uses only counters that the kernel has.
//
// Example: remark_on_measured(kernel); for (auto& r : kernel.remarks) print(r.message);
#pragma once

#include "core/profile.h"

namespace cutegen::eval {

void remark_on_measured(KernelProfile& kernel);

}  // namespace cutegen::eval
