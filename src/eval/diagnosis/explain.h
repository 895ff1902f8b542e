// SPDX-License-Identifier: Apache-2.0
// Explains a profile: adds the most costly source lines with their text, and remarks.
//
// Contract: explain() changes no counter of the profile. Each source line has its shares of the
// kernel's issue slots, memory sectors and shared-memory wavefronts; the largest share of the
// limiting resource comes first. A remark names a cost, the figures that show it, and the usual
// remedy. docs/profile.md explains the remarks.
//
// Example: explain(kernel, source_text); for (auto& r : kernel.remarks) print(r.message);
#pragma once

#include <string>

#include "core/profile.h"

namespace cutegen::eval {

void explain(KernelProfile& kernel, const std::string& source);

}  // namespace cutegen::eval
