// SPDX-License-Identifier: Apache-2.0
// How exact baselines are: their outputs on secret sets, judged by the rule for candidates.
//
// Contract: the ways are open in the worker, at this shape. Each runs once on a set of every
// family, in memory that the evaluator owns; the GPU compares. A set that does not fit, a worker
// without the GPU's memory or a way that raises leaves `passes` unknown, with the reason. Only the
// end of the Context is an error. The module keeps the values of the first family.
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
  std::string missing;      // why no set can be had; empty: they can
  GpuJudge* gpu = nullptr;  // nothing may be missing
  std::vector<std::string> families;
  std::function<Result<OfficialSetPtr>(const Context&, const std::string& family)> draw;
  bool lock = true;  // share the GPU with others of cutegen; off for a caller that holds it
};

// Sets of the pool that candidates are judged on; `official` may be null.
BaselineSets sets_of(OfficialJudge* official, const Task& task, const ShapeCase& shape,
                     const std::vector<std::string>& families);

// One for each that was wanted, with its class.
Result<std::vector<BaselineAccuracy>> judge_baselines(
    const Context& ctx, const BaselineSets& sets, torch::TorchWorker& worker, const Task& task,
    const ShapeCase& shape, const std::vector<torch::BaselineWanted>& wanted);

}  // namespace cutegen::eval
