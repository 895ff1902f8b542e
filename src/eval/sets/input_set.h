// SPDX-License-Identifier: Apache-2.0
// InputSet: secret values of a task for one shape and family, with the expected outputs.
//
// Contract: make_input_set() checks a TensorSet of the torch worker against the task (names, sizes,
// dtypes) and computes the tolerances once. A mutated tensor is both an input, with its initial
// values, and an output, with its final values. cutegen never shows values of a set to anybody.
//
// Example: CG_TRY(auto set, make_input_set(task, shape, std::move(tensors)));
#pragma once

#include <memory>
#include <span>

#include "core/task.h"
#include "eval/sets/family.h"
#include "tensor/compare.h"
#include "torch/worker.h"

namespace cutegen::eval {

struct InputSet {
  std::string shape, family;
  Mapping memory;
  std::vector<torch::TensorSlot> inputs;  // inputs, parameters and buffers: part "value"
  std::vector<Expected> outputs;          // expected outputs, in the order of results_of(task)
  std::vector<std::string> notes;
  uint64_t model_seed = 0;  // seed of the reference's random parameters
  bool as_made = false;     // no input differs from family `made`
  std::span<const std::byte> bytes_of(const torch::TensorSlot& slot) const {
    return {memory.data() + slot.offset, slot.bytes};
  }
  // The initial values of an input or a mutated tensor; null for an output.
  const torch::TensorSlot* initial(const std::string& name) const;
};

// Calls judge() of tensor/compare.h for a result of this set. A wrong element of a mutated tensor
// counts as unwritten if it still has its initial value.
Judgement judge_result(const InputSet& set, const Expected& expected,
                       std::span<const std::byte> bytes, const Poison* poison);

// Whether the evaluator skips elements of this family whose truth is NaN, because the reference has
// no certain result for them.
bool leaves_out_elements(const std::string& family);
// The tolerance of an output in its math mode at this shape. docs/evaluation.md: "Tolerance".
ToleranceRule tolerance_rule(const Task& task, const ShapeCase& shape, const TensorInfo& output);
// The tolerance of the public rule reported as `compat`.
double compat_tolerance(MathMode mode);

Result<std::shared_ptr<const InputSet>> make_input_set(const Task& task, const ShapeCase& shape,
                                                       torch::TensorSet tensors);

}  // namespace cutegen::eval
