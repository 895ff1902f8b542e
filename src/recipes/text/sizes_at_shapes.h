// SPDX-License-Identifier: Apache-2.0
// The values of sizes at the task's shapes, and the lengths of a reduction's rows at all shapes
// that the evaluator times.
//
// Contract: size_at() evaluates an expression of the launch plan at a shape; `names` maps tensors
// to their identifiers in plans. same_size() returns whether two expressions have the same value at
// every shape of the task. timed_lengths() returns the number of elements along the reduced axes at
// the official shape (the shape in the task file) and at the user's shapes with a positive weight,
// ascending and without duplicates. The list is empty if there is only one length, or if a length
// does not follow from the sizes of the task's tensors.
//
// Example: timed_lengths(task, fused)  // {4096, 11008, 14336}
#pragma once

#include "core/task.h"
#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

Result<int64_t> size_at(const Task& task, const std::map<std::string, std::string>& names,
                        const ShapeCase& shape, const std::string& expression);
bool same_size(const Task& task, const std::map<std::string, std::string>& names,
               const std::string& a, const std::string& b);
std::vector<int64_t> timed_lengths(const Task& task, const Fused& fused);

}  // namespace cutegen::recipes
