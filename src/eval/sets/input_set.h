// SPDX-License-Identifier: Apache-2.0
// InputSet: secret inputs of a task for one shape and one family (input distribution), with the
// expected outputs.
//
// Contract: make_input_set() checks the names, sizes and dtypes of the torch worker's `TensorSet`
// against the task, and computes the tolerances. A mutated tensor (which the program changes in
// place) is among the inputs (with the initial values) and among the outputs (with the final
// values). No language model and no user ever sees the values of a set, unless the set comes from
// the published seed (TruthPool::draw_public).
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
  std::vector<torch::TensorSlot> inputs;  // inputs, parameters and buffers
  std::vector<Expected> outputs;          // outputs in the order of results_of(task)
  std::vector<std::string> notes;
  uint64_t model_seed = 0;  // seed for the random initial parameters of the reference
  bool as_made = false;     // the inputs equal the inputs of family `made`
  std::span<const std::byte> bytes_of(const torch::TensorSlot& slot) const {
    return {memory.data() + slot.offset, slot.bytes};
  }
  // Returns the initial values of an input or a mutated tensor, or null for an output.
  const torch::TensorSlot* initial(const std::string& name) const;
};

// Compares an output with the truth by judge() of tensor/compare.h. A wrong element of a mutated
// tensor counts as unwritten if the element still has its initial value.
Judgement judge_result(const InputSet& set, const Expected& expected,
                       std::span<const std::byte> bytes, const Poison* poison);

// True if the evaluator does not judge elements whose truth is NaN on inputs of this family,
// because the reference's result for such inputs is arbitrary.
bool leaves_out_elements(const std::string& family);
// Returns the tolerance of an output at this shape (docs/tolerance.md).
ToleranceRule tolerance_rule(const Task& task, const ShapeCase& shape, const TensorInfo& output);
// Returns the tolerance of public benchmarks, whose result the verdict reports as `compat`.
double compat_tolerance(MathMode mode);

Result<std::shared_ptr<const InputSet>> make_input_set(const Task& task, const ShapeCase& shape,
                                                       torch::TensorSet tensors);

}  // namespace cutegen::eval
