// SPDX-License-Identifier: Apache-2.0
// Extents: the size of every axis of a loop nest as an expression of the launch plan.
//
// Contract: if an axis of a tensor corresponds to an axis of the loop nest, the two axes have the
// same size. A reshape may split axes into new axes. The size of a new axis is the product of the
// sizes of the old axes, divided by the sizes of the other new axes. If no tensor and no reshape
// determines the size of an axis of the nest, find_extents() returns an error.
//
// Example: x of [8, 6, 5] summed as [8, 30] -> "dim(x,0)", "dim(x,1)*dim(x,2)"
#pragma once

#include "recipes/fuse/fused.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {

// Returns the size of an axis of the whole tensor, before any reshape.
std::string size_of_axis(const Fused& fused, const Operand& operand, size_t axis);
// Returns the product of the sizes of the tensor's axes in `group`, the axes that a reshape
// converts together.
std::string total_of(const Fused& fused, const Operand& operand, const AxisGroup& group);

Result<void> find_extents(Fused& fused);
// Returns the conditions on tensors' sizes that follow from numbers in the module, such as the
// groups of a norm or the bounds of a slice: "(dim(x,1)) % max(1,8) == 0".
std::vector<std::string> fixed_sizes(const Fused& fused);
// Adds a condition to the plan's requirements, unless the plan already has this requirement.
void demand(Fused& fused, const std::string& text);
// Requires that an operand's axis has its size in the task file. Slices with constant bounds need
// this requirement: a slice that is half of the axis at one size is not half of it at other sizes.
void demand_size(Fused& fused, const Operand& operand, size_t axis);
// Requires that the operand's axis has at least one element, because the kernel reads the nearest
// element for an index outside the axis.
void demand_elements(Fused& fused, const Operand& operand, size_t axis);
// Requires that the operand's axis divides into equal parts, because chunk() returns unequal parts
// at other sizes.
void demand_parts(Fused& fused, const Operand& operand, size_t axis);
// Requires that all tensors have the same size along an axis of the loop nest. Only scatters need
// this requirement, because PyTorch accepts a scatter whose index is smaller than its source.
void demand_equal_sizes(Fused& fused);
// Returns the sizes of an output's axes, or an error if a reshape makes one of these sizes unknown.
Result<std::vector<std::string>> extents_of(const Fused& fused, const FusedOutput& output);

}  // namespace cutegen::recipes
