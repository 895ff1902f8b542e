// SPDX-License-Identifier: Apache-2.0
// Times the baselines of one task one after the other, in a torch worker that has the GPU.
//
// Contract: opens the module once for each shape. Then it adds each baseline, checks it against
// eager's result and times one call with a cold L2, as certificates do (the median of a few runs
// with its interval). If a task has several weighted shapes, the time is their weighted geometric
// mean; a baseline that fails at one shape has no time. With `sets`, it judges the results after
// timing. A baseline that raises, does not fit, or takes too long to build gets a reason. It
// restarts a worker that hangs. Only the end of the Context is an error. In the end it frees the
// GPU's memory. Several callers may run in parallel if they open the worker with a lock file of the
// GPU.
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

// Returns the sets to judge baselines on at a shape.
using BaselineSetsOf = std::function<BaselineSets(const ShapeCase&)>;

struct BaselinesTimed {
  std::vector<BaselineTime> times;  // one entry for each wanted baseline
  bool out_of_memory = false;  // a baseline ran out of memory: with more free memory it may work
  bool broken = false;         // the worker is unusable
  bool cut = false;            // a build ended early, because the Context's time was nearly over
};

// Why "eager-fp32" is not timed in addition to "eager"; empty if the two differ.
std::string same_as_eager(const Task& task);

// The approximate memory of a module that is open on a GPU: inputs and outputs, a second result,
// and an operator's workspace.
int64_t open_bytes(const ShapeCase& shape);

Result<BaselinesTimed> time_baselines(const Context& ctx, torch::TorchWorker& worker,
                                      const Task& task,
                                      const std::vector<torch::BaselineWanted>& wanted,
                                      const BaselineLimits& limits,
                                      const BaselineProgress& progress = {},
                                      const BaselineSetsOf& sets = {});

}  // namespace cutegen::eval
