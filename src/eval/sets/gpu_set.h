// SPDX-License-Identifier: Apache-2.0
// GpuSet: secret values of a task at its official shape with the expected outputs, in GPU
// memory that the evaluator owns.
//
// A mutated tensor is both an input, with initial values that no program can overwrite, and an
// output, with its final values.
//
// Contract: the torch worker writes the set into memory that the evaluator allocates. The sizes
// follow from the task alone, so the worker cannot move or enlarge anything. Runners map the inputs
// read-only and never see the truth. If a set does not fit the GPU, the error is `unsupported` and
// names the set's size and the free memory.
//
// Example: CG_TRY(auto set, make_gpu_set(ctx, *judge, *worker, task, shape, "made", seed));
#pragma once

#include "core/task.h"
#include "eval/sets/gpu_judge.h"
#include "torch/worker.h"

namespace cutegen::eval {

struct GpuSet {
  std::string task_id, shape, family;
  std::vector<SharedBuffer> inputs;  // inputs, parameters and buffers, for a runner
  std::vector<GpuExpected> outputs;
  std::vector<std::string> notes;
  int64_t bytes = 0;        // of GPU memory
  uint64_t model_seed = 0;  // seed of the reference's random parameters
  std::vector<GpuBuffer> memory;
  // The initial values of an input or a mutated tensor; null for an output.
  const GpuBuffer* initial(const std::string& name) const;
};
using GpuSetPtr = std::shared_ptr<const GpuSet>;

// The bytes of a set, and about how many more bytes the worker needs while it computes one.
struct GpuSetNeeds {
  int64_t set_bytes = 0, work_bytes = 0, tensors = 0;
};
Result<GpuSetNeeds> gpu_set_needs(const Task& task, const ShapeCase& shape);

Result<GpuSetPtr> make_gpu_set(const Context& ctx, GpuJudge& judge, torch::TorchWorker& worker,
                               const Task& task, const ShapeCase& shape, const std::string& family,
                               uint64_t seed);

}  // namespace cutegen::eval
