// SPDX-License-Identifier: Apache-2.0
// Judges the accuracy of baselines: their outputs on secret sets, by the rule for candidates.
//
// Contract: the worker has opened the baselines at this shape. Each baseline runs once on a set of
// every family, in memory that the evaluator owns; the GPU compares. If a set does not fit, the
// worker cannot use the GPU's memory, or a baseline raises, `passes` stays unknown and `why` gives
// the reason. Only the end of the Context is an error. Afterwards, the worker's module holds the
// values of the first family.
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
  std::string missing;      // why no set is available; empty if sets are
  GpuJudge* gpu = nullptr;  // set if nothing is missing
  std::vector<std::string> families;
  std::function<Result<GpuSetPtr>(const Context&, const std::string& family)> draw;
  bool lock = true;  // take the GPU's lock (shared); false if the caller holds it
};

// Sets from the pool on which candidates are judged. `official` may be null.
BaselineSets sets_of(GpuTruths* official, const Task& task, const ShapeCase& shape,
                     const std::vector<std::string>& families);

// Returns one entry for each wanted baseline, with its precision.
Result<std::vector<BaselineAccuracy>> judge_baselines(
    const Context& ctx, const BaselineSets& sets, torch::TorchWorker& worker, const Task& task,
    const ShapeCase& shape, const std::vector<torch::BaselineWanted>& wanted);

}  // namespace cutegen::eval
