// SPDX-License-Identifier: Apache-2.0
// Extents: the size of every axis of a loop nest as a plan expression.
//
// Contract: if a tensor's axis corresponds to an axis of the nest, that axis has the tensor's size.
// A reshape may split axes into new ones. The size of such a new axis is the product of the old
// sizes, divided by the sizes of the other new axes. If no tensor and no reshape determines the
// size of an axis, find_extents() returns an error.
//
// Example: x of [8, 6, 5] summed as [8, 30] -> "dim(x,0)", "dim(x,1)*dim(x,2)"
#pragma once

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

Result<void> find_extents(Fused& fused);
// Returns the conditions on tensors' sizes that follow from numbers in the module, such as the
// groups of a norm or the bounds of a slice: "(dim(x,1)) % max(1,8) == 0".
std::vector<std::string> fixed_sizes(const Fused& fused);
// Adds a condition to the plan's requirements, unless they already contain it.
void demand(Fused& fused, const std::string& text);
// Requires that an operand's axis has the same size as in the task as written. This is for slices
// with constant bounds: if such a slice is half of the axis at one shape, it is not at other
// shapes.
void demand_size(Fused& fused, const Operand& operand, size_t axis);
// Requires that the axis has at least one element. For an index outside the axis, the kernel reads
// the nearest element.
void demand_elements(Fused& fused, const Operand& operand, size_t axis);
// Requires that the axis divides into equal parts. Without this, chunk() may return unequal parts.
void demand_parts(Fused& fused, const Operand& operand, size_t axis);
// Requires that all tensors of the nest have the same sizes. Only scatters need this condition,
// because PyTorch accepts a scatter whose index is smaller than its source.
void demand_equal_sizes(Fused& fused);
// Returns the sizes of an output's own axes, or an error if a reshape makes one of them unknown.
Result<std::vector<std::string>> extents_of(const Fused& fused, const FusedOutput& output);

}  // namespace cutegen::recipes
