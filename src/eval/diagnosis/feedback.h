// SPDX-License-Identifier: Apache-2.0
// Describes in words where values are wrong, and what limits the program's speed.
//
// Contract: the text is short and never contains a value of a secret set.
//
// Example:
//   "out: 36 of 1024 elements wrong (3.5%) on shape odd1, inputs 'signed': columns from 96 on"
#pragma once

#include "core/verdict.h"
#include "tensor/compare.h"

namespace cutegen::eval {

Mismatch describe_mismatch(const Judgement& judgement, const OutputSpec& output,
                           const std::string& shape, const std::string& family);
std::string text_of(const Mismatch& mismatch);     // one line
std::string details_of(const Mismatch& mismatch);  // a few lines
// Describes the limit of the slowest kernel, with the figures that show it. Empty without kernels.
std::string bottleneck_text(const std::vector<KernelProfile>& kernels, double floor_ns);

}  // namespace cutegen::eval
