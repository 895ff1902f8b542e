// SPDX-License-Identifier: Apache-2.0
// Values with which the first pass of a reduction replaces the elements that it has read, so that
// later passes need not compute these values again.
//
// Contract: kept_values() maps instructions to the operands whose elements they replace. These
// values depend on no reduction, and later passes need nothing else of the operands that they
// replace. Empty if nothing is gained, or if `room` has too few places.
//
// Example: group_norm(gelu(x)) -> {gelu: x}: the variance and the result read gelu.
#pragma once

#include <map>
#include <vector>

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

// Instruction -> operand. `later`: what passes after the first one compute. `room`: operands whose
// elements are kept, each in a place that holds a float.
using KeptValues = std::map<int, size_t>;
KeptValues kept_values(const Fused& fused, const std::vector<int>& later,
                       const std::vector<size_t>& room);

}  // namespace cutegen::recipes
