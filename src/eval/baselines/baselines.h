// SPDX-License-Identifier: Apache-2.0
// Times the baselines of one task one after the other, in a torch worker that uses the GPU.
//
// Contract: time_baselines() builds the module once per shape. Then it builds each baseline,
// compares its result with eager's, and times calls with a cold L2: the median of a few runs, with
// its interval. If a task has several weighted shapes, the time is their weighted geometric mean; a
// baseline that fails at one shape has no time. With `sets`, the function judges the results after
// timing. A baseline that raises, does not fit the GPU, or builds too slowly has a reason instead
// of a time. A worker that hangs is restarted. The function returns an Error only if the Context
// was cancelled or timed out. Before it returns, it frees the GPU's memory. Calls may run in
// parallel if each worker has the GPU's lock file.
//
// Example: CG_TRY(BaselinesTimed t, time_baselines(ctx, *worker, task, {{"eager", ""}}, {}));
#pragma once

#include <functional>

#include "core/baseline.h"
#include "eval/api/wanted_baselines.h"
#include "eval/baselines/baseline_accuracy.h"
#include "torch/worker.h"

namespace cutegen::eval {

using BaselineProgress = std::function<void(const std::string&)>;

// Returns the input sets for judging baselines at a shape.
using BaselineSetsOf = std::function<BaselineSets(const ShapeCase&)>;

struct BaselinesTimed {
  std::vector<BaselineTime> times;  // one entry per wanted baseline
  bool out_of_memory = false;       // a baseline ran out of GPU memory; it may work with more
  bool broken = false;              // the worker can no longer be used
  bool cut = false;  // a build was stopped early, because the Context's time limit was near
};

// The reason why "eager-fp32" is not timed: it equals "eager". Empty if the two differ.
std::string same_as_eager(const Task& task);

// Estimates the GPU memory of a module at this shape: inputs, outputs, a second copy of the
// outputs, and the workspace of an operator.
int64_t open_bytes(const ShapeCase& shape);

Result<BaselinesTimed> time_baselines(const Context& ctx, torch::TorchWorker& worker,
                                      const Task& task,
                                      const std::vector<torch::BaselineWanted>& wanted,
                                      const BaselineLimits& limits,
                                      const BaselineProgress& progress = {},
                                      const BaselineSetsOf& sets = {});

}  // namespace cutegen::eval
