// SPDX-License-Identifier: Apache-2.0
// What a profile says: the hot lines with their source text, and remarks with rules of thumb.
//
// Contract: adds to a profile, changes none of its counters. Each line gets its shares of the
// kernel's issue slots, memory sectors and shared wavefronts; the hottest in what binds come first.
// A remark names what costs time, its figures, and what usually helps. docs/profile.md explains
// them.
//
// Example: explain(kernel, source_text); for (auto& r : kernel.remarks) print(r.message);
#pragma once

#include <string>

#include "core/profile.h"

namespace cutegen::eval {

void explain(KernelProfile& kernel, const std::string& source);

}  // namespace cutegen::eval
