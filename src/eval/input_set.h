// SPDX-License-Identifier: Apache-2.0
// InputSet: secret values of a task for one shape and family, with what the outputs must be.
//
// Contract: made from a TensorSet of the torch worker, which is checked against the task (names,
// sizes, dtypes); tolerances are computed once, here. Never shown to anyone.
//
// Example: CG_TRY(auto set, make_input_set(task, shape, std::move(tensors)));
#pragma once

#include <memory>
#include <span>

#include "core/task.h"
#include "tensor/compare.h"
#include "torch/worker.h"

namespace cutegen {

struct InputSet {
  std::string shape, family;
  Mapping memory;
  std::vector<TensorSlot> inputs;  // inputs, parameters and buffers: part "value"
  std::vector<Expected> outputs;
  std::vector<std::string> notes;
  uint64_t model_seed = 0;  // what the reference was made with
  [[nodiscard]] std::span<const std::byte> bytes_of(const TensorSlot& slot) const {
    return {memory.data() + slot.offset, slot.bytes};
  }
};

// How close an output must be in the task's math mode, at this shape. docs/evaluation.md:
// "Tolerance".
[[nodiscard]] ToleranceRule tolerance_rule(const Task& task, const ShapeCase& shape);
// The tolerance of the public rule reported as `compat`.
[[nodiscard]] double compat_tolerance(MathMode mode);

[[nodiscard]] Result<std::shared_ptr<const InputSet>> make_input_set(const Task& task,
                                                                     const ShapeCase& shape,
                                                                     TensorSet tensors);

}  // namespace cutegen
