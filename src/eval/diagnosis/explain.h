// SPDX-License-Identifier: Apache-2.0
// Explains a profile: the hot lines with their source text, and remarks with rules of thumb.
//
// Contract: adds to a profile and changes none of its counters. Each line gets its shares of the
// kernel's issue slots, memory sectors and shared wavefronts. Lines are sorted by their share of
// the limiting resource. A remark names the cost, its figures, and what usually helps.
// docs/profile.md explains the remarks.
//
// Example: explain(kernel, source_text); for (auto& r : kernel.remarks) print(r.message);
#pragma once

#include <string>

#include "core/profile.h"

namespace cutegen::eval {

void explain(KernelProfile& kernel, const std::string& source);

}  // namespace cutegen::eval
