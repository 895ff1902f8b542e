// SPDX-License-Identifier: Apache-2.0
// Times the baselines of one task one after the other, in a torch worker that uses the GPU.
//
// Contract: at each shape, time_baselines() builds the module and then each baseline, compares the
// baseline's result with eager's result, and times calls with a cold L2. A time is the median of a
// few runs, with its confidence interval. If a task has several weighted shapes, the time is the
// weighted geometric mean over these shapes. A baseline that fails at one shape has no time. With
// `sets`, time_baselines() also judges the results after timing. If a baseline raises, does not fit
// in the GPU's memory, or builds too slowly, the baseline has a reason instead of a time. If a
// worker hangs, time_baselines() restarts it. The result is an Error only if the Context was
// cancelled or timed out. At the end, the GPU's memory is free again. Several calls may run in
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
  bool out_of_memory = false;       // a baseline ran out of GPU memory; more memory may help
  bool broken = false;              // the worker is no longer usable
  bool cut = false;  // a build ended early, because the Context's time limit was near
};

// If "eager-fp32" equals "eager", returns the reason not to time "eager-fp32"; otherwise an empty
// text.
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
