// SPDX-License-Identifier: Apache-2.0
// Decides which values the first pass of a reduction kernel stores in place of elements that it has
// read, so that later passes need not compute these values again.
//
// Contract: kept_values() maps instructions to operands: the value of an instruction overwrites the
// elements of the operand. The values do not depend on any reduction, and later passes do not need
// the operands' original elements. The map is empty if there are no values to keep, or if `room`
// has too few operands for them.
//
// Example: group_norm(gelu(x)) -> {gelu: x}, because the variance and the result both read gelu(x)
#pragma once

#include <map>
#include <vector>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

// Maps instructions to operands. `later` lists the instructions that passes after the first pass
// compute. `room` lists the operands whose elements the kernel keeps with 32 bits each.
using KeptValues = std::map<int, size_t>;
KeptValues kept_values(const Fused& fused, const std::vector<int>& later,
                       const std::vector<size_t>& room);

}  // namespace cutegen::recipes
