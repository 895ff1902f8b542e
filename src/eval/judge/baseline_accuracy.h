// SPDX-License-Identifier: Apache-2.0
// Judges the accuracy of baselines: their outputs on secret sets, by the rule for candidates.
//
// Contract: the worker has opened the baselines at this shape. Each baseline runs once on a set of
// every family, in memory that the evaluator owns; the GPU compares. `passes` stays unknown, with
// the reason, if a set does not fit, if the worker cannot use the GPU's memory, or if a baseline
// raises. Only the end of the Context is an error. The module keeps the values of the first family.
//
// Example: CG_TRY(auto found, judge_baselines(ctx, sets, worker, task, task.official(), wanted));
#pragma once

#include <functional>

#include "core/baseline.h"
#include "eval/sets/official_set.h"
#include "torch/worker.h"

namespace cutegen::eval {

class OfficialJudge;

struct BaselineSets {
  std::string missing;      // why no set is available; empty: sets are available
  GpuJudge* gpu = nullptr;  // nothing may be missing
  std::vector<std::string> families;
  std::function<Result<OfficialSetPtr>(const Context&, const std::string& family)> draw;
  bool lock = true;  // take the GPU's lock, shared; off for a caller that holds it
};

// Sets of the pool that candidates are judged on; `official` may be null.
BaselineSets sets_of(OfficialJudge* official, const Task& task, const ShapeCase& shape,
                     const std::vector<std::string>& families);

// One entry for each wanted baseline, with its class.
Result<std::vector<BaselineAccuracy>> judge_baselines(
    const Context& ctx, const BaselineSets& sets, torch::TorchWorker& worker, const Task& task,
    const ShapeCase& shape, const std::vector<torch::BaselineWanted>& wanted);

}  // namespace cutegen::eval
