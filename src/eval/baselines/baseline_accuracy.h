// SPDX-License-Identifier: Apache-2.0
// Judges the accuracy of baselines: compares their outputs on secret inputs with the truth (the
// result in float64), by the same rule as for candidates.
//
// Contract: the torch worker must have opened the baselines at the shape. Each baseline runs once
// on an input set of every family (input distribution), in memory that the evaluator owns. The GPU
// compares the outputs with the truth. If a set does not fit in the GPU's memory, if the worker
// cannot use the memory, or if a baseline raises, `passes` stays unset and `why` gives the reason.
// The result is an Error only if the Context was cancelled or timed out. The first family comes
// last, because the worker's module then keeps this family's values for timing (unless every
// baseline fails earlier).
//
// Example: CG_TRY(auto found, judge_baselines(ctx, sets, worker, task, task.official(), wanted));
#pragma once

#include <functional>

#include "core/baseline.h"
#include "eval/sets/gpu_set.h"
#include "torch/worker.h"

namespace cutegen::eval {

class GpuTruths;

struct BaselineSets {
  std::string missing;      // why no input set is available; empty if available
  GpuJudge* gpu = nullptr;  // not null if `missing` is empty
  std::vector<std::string> families;
  std::function<Result<GpuSetPtr>(const Context&, const std::string& family)> draw;
  bool lock = true;  // take the GPU's lock (shared); false: the caller has the lock
};

// Returns input sets from the pool that also supplies the sets for candidates. `official` may be
// null.
BaselineSets sets_of(GpuTruths* official, const Task& task, const ShapeCase& shape,
                     const std::vector<std::string>& families);

// Returns the accuracy and the precision of each wanted baseline.
Result<std::vector<BaselineAccuracy>> judge_baselines(
    const Context& ctx, const BaselineSets& sets, torch::TorchWorker& worker, const Task& task,
    const ShapeCase& shape, const std::vector<torch::BaselineWanted>& wanted);

}  // namespace cutegen::eval
