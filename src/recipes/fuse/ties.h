// SPDX-License-Identifier: Apache-2.0
// Ties: which operands of a loop nest have the same sizes at every shape that the module accepts.
//
// Contract: a loop nest has one size for each of its axes. Pointwise operators require that their
// operands have the same size along an axis. Nothing requires equal sizes of operands that no
// operator combines, such as the operands of cat() along the joined axis, or the tensors from which
// a module computes two results. Their sizes may be equal at the official shape (the shape in the
// task file) and differ at other shapes, where a common loop nest would compute too many or too few
// elements.
//
// `region` says what is known about sizes: Region::same and Region::equal.
//
// Example: x * 2 and y + 1 of one official shape -> tied_outputs() == {{0}, {1}}
#pragma once

#include <set>
#include <string>
#include <vector>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

// Divides the outputs of a loop nest into groups. At every shape, the operands of a group have the
// same sizes, unless a single output needs operands whose sizes may differ.
std::vector<std::vector<size_t>> tied_outputs(const Fused& fused, const Region& region);
// Returns whether all operands of the loop nest have the same sizes at every shape.
bool has_one_size(const Fused& fused, const Region& region);
// Returns the sizes that must be equal for all operands of the loop nest to have the same sizes.
// Returns an empty list if no expressions of the launch plan give these sizes.
EqualSizes untied_sizes(const Fused& fused, const Region& region);
// Returns, for each axis of an output, the texts that name sizes equal to the axis' size at every
// shape (Region::same).
std::vector<std::set<std::string>> equal_sizes(const Fused& fused, const FusedOutput& output,
                                               const Region& region);

}  // namespace cutegen::recipes
