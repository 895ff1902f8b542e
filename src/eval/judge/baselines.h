// SPDX-License-Identifier: Apache-2.0
// The baselines of one task, timed one after the other in a torch worker that has the GPU.
//
// Contract: the module is opened once a shape; each way is added, checked against eager's result,
// and timed at once: one call, cold L2, as certificates time it (a median of few runs with its
// interval). Of a task with several weighted shapes the time is their weighted geometric mean; a
// way that one shape lacks has no time. With `sets`, the results are judged when all ways are
// timed. A way that raises, does not fit, or is not built in time has a reason; a worker that hung
// is started again for the next one. Only the end of the Context is an error. The GPU's memory is
// free afterwards. Whoever opens the worker with a slot may go on side by side.
//
// Example: CG_TRY(BaselinesTimed t, time_baselines(ctx, *worker, task, {{"eager", ""}}, {}));
#pragma once

#include <functional>

#include "core/baseline.h"
#include "eval/judge/baseline_accuracy.h"
#include "torch/worker.h"

namespace cutegen::eval {

struct BaselineLimits {
  Nanoseconds open = std::chrono::seconds(60);    // of the module on the GPU
  Nanoseconds build = std::chrono::seconds(120);  // of one way
};

using BaselineProgress = std::function<void(const std::string&)>;

// Where to take sets for a shape from.
using BaselineSetsOf = std::function<BaselineSets(const ShapeCase&)>;

struct BaselinesTimed {
  std::vector<BaselineTime> times;  // one for each that was wanted
  bool out_of_memory = false;       // somewhere: with more memory free it may go better
  bool broken = false;              // the worker cannot be used any more
  bool cut = false;  // a build was ended early: little was left of the Context's time
};

inline constexpr const char* kStrictEager = "eager-fp32";
inline const std::vector<std::string> kBaselineKinds{"eager", kStrictEager, "eager-tf32", "compile",
                                                     "compile-max"};

// Why "eager-fp32" is not timed beside "eager"; empty if it is another computation.
std::string same_as_eager(const Task& task);

// "eager", ..., or MODULE:CALLABLE of the user's, at most one of these.
Result<std::vector<torch::BaselineWanted>> baselines_named(const std::vector<std::string>& names);

// What a module that is open on a GPU takes about: inputs and outputs, a second result beside
// eager's, and what an operator needs besides.
int64_t open_bytes(const ShapeCase& shape);

Result<BaselinesTimed> time_baselines(const Context& ctx, torch::TorchWorker& worker,
                                      const Task& task,
                                      const std::vector<torch::BaselineWanted>& wanted,
                                      const BaselineLimits& limits,
                                      const BaselineProgress& progress = {},
                                      const BaselineSetsOf& sets = {});

}  // namespace cutegen::eval
