// SPDX-License-Identifier: Apache-2.0
// Describes in words which output values are wrong, and which hardware unit limits the program's
// speed.
//
// Contract: the texts are short and never contain a value of a secret input set.
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
// Describes what limits the slowest kernel, with the figures. Returns "" if `kernels` is empty.
std::string bottleneck_text(const std::vector<KernelProfile>& kernels, double floor_ns);

}  // namespace cutegen::eval
