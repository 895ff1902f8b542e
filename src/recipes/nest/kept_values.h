// SPDX-License-Identifier: Apache-2.0
// Decides which values the first pass of a reduction kernel stores in place of the elements that it
// has read, so that later passes need not compute these values again.
//
// Contract: kept_values() maps instructions to operands: the value of the instruction overwrites
// the elements of the operand. The values do not depend on any reduction. Later passes do not need
// the original elements of these operands. The map is empty if there is no such value, or if `room`
// has too few operands for all of them.
//
// Example: group_norm(gelu(x)) -> {gelu: x}, because the variance and the result both read gelu(x)
#pragma once

#include <map>
#include <vector>

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

// Instruction -> operand. `later` are the instructions that passes after the first one compute.
// `room` are the operands whose elements the kernel keeps with 32 bits each.
using KeptValues = std::map<int, size_t>;
KeptValues kept_values(const Fused& fused, const std::vector<int>& later,
                       const std::vector<size_t>& room);

}  // namespace cutegen::recipes
