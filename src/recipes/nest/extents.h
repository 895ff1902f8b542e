// SPDX-License-Identifier: Apache-2.0
// Extents: the plan expression for the size of every axis of a loop nest.
//
// Contract: an axis of the nest has the size of a tensor axis that runs along it. The size
// of an axis that a reshape made is the total size of the old axes, divided by the sizes of the
// other new axes. An axis whose size no tensor shows is an error.
//
// Example: x of [8, 6, 5] summed as [8, 30] -> "dim(x,0)", "dim(x,1)*dim(x,2)"
#pragma once

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

Result<void> find_extents(Fused& fused);
// The conditions on the tensors' sizes that follow from sizes that the module fixes (groups of a
// norm, slices): "(dim(x,1)) % max(1,8) == 0".
std::vector<std::string> fixed_sizes(const Fused& fused);
// Adds a condition to the plan's requirements, once.
void demand(Fused& fused, const std::string& text);
// Requires an operand's axis to have its official size: a slice with constant bounds that is half
// of the axis may be another part of it at other sizes.
void demand_size(Fused& fused, const Operand& operand, size_t axis);
// Requires the axis to have at least one element, which an index may read.
void demand_elements(Fused& fused, const Operand& operand, size_t axis);
// Requires the axis to divide into equal parts: chunk() divides an odd size into unequal halves.
void demand_parts(Fused& fused, const Operand& operand, size_t axis);
// Requires all tensors of the nest to have the same sizes. Pointwise operators need no such
// condition, but PyTorch accepts a scatter whose index is smaller than its source.
void demand_equal_sizes(Fused& fused);
// The sizes of an output's own axes; an error if a reshape hides one.
Result<std::vector<std::string>> extents_of(const Fused& fused, const FusedOutput& output);

}  // namespace cutegen::recipes
