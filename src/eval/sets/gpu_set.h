// SPDX-License-Identifier: Apache-2.0
// GpuSet: secret inputs of a task at its official shape (the sizes in the task file), with the
// expected outputs, in GPU memory that the evaluator owns.
//
// A mutated tensor (which the program changes in place) is among the inputs (with initial values
// that no program can overwrite) and among the outputs (with the final values).
//
// Contract: the torch worker writes the set into memory that the evaluator allocates. The worker
// cannot change sizes and offsets, because the evaluator computes them from the task. Runners map
// the inputs read-only and have no access to the truth (the result in float64). If a set does not
// fit in the GPU's memory, the result is an `unsupported` error that names the set's size and the
// free memory.
//
// Example: CG_TRY(auto set, make_gpu_set(ctx, *judge, *worker, task, shape, "made", seed));
#pragma once

#include "core/task.h"
#include "eval/sets/gpu_judge.h"
#include "torch/worker.h"

namespace cutegen::eval {

struct GpuSet {
  std::string task_id, shape, family;
  std::vector<SharedBuffer> inputs;  // inputs, parameters and buffers, for a runner to map
  std::vector<GpuExpected> outputs;
  std::vector<std::string> notes;
  int64_t bytes = 0;        // size of the set in GPU memory
  uint64_t model_seed = 0;  // seed for the random initial parameters of the reference
  std::vector<GpuBuffer> memory;
  // Returns the initial values of an input or a mutated tensor, or null for an output.
  const GpuBuffer* initial(const std::string& name) const;
};
using GpuSetPtr = std::shared_ptr<const GpuSet>;

// The GPU memory of a set (set_bytes), and an estimate of the memory that the torch worker needs in
// addition while it computes a set (work_bytes).
struct GpuSetNeeds {
  int64_t set_bytes = 0, work_bytes = 0, tensors = 0;
};
Result<GpuSetNeeds> gpu_set_needs(const Task& task, const ShapeCase& shape);

Result<GpuSetPtr> make_gpu_set(const Context& ctx, GpuJudge& judge, torch::TorchWorker& worker,
                               const Task& task, const ShapeCase& shape, const std::string& family,
                               uint64_t seed);

}  // namespace cutegen::eval
