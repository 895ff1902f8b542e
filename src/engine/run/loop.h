// SPDX-License-Identifier: Apache-2.0
// The run loop with its environment as parameters, so that tests can replace it with toys.
//
// Contract: the same as engine/run/run.h. Parts provide an evaluator, a proposer or a model, and a
// clock. Apart from Parts the loop touches only the store and the out folder.
//
// Example: Parts parts = real_parts(); optimize_with(parts, ctx, store, settings, observer);
#pragma once

#include <functional>
#include <memory>

#include "engine/run/run.h"
#include "engine/run/walk.h"
#include "llm/chat.h"

namespace cutegen::engine {

struct Parts {
  std::function<Result<std::unique_ptr<eval::EvaluatorClient>>(const Context&,
                                                               const eval::EvaluatorOptions&)>
      start_evaluator;
  // For proposers that do not call a language model (`builtin`).
  std::function<Result<std::unique_ptr<Proposer>>(const OptimizeSettings&, const eval::OpenedTask&)>
      make_proposer;
  std::function<int64_t()> now_ms;  // any steady clock
  // For all other proposers. The store holds the recordings of earlier runs.
  std::function<Result<std::unique_ptr<llm::ChatModel>>(const OptimizeSettings&, store::Store&)>
      open_model{};
  // Finds a task's cached baselines; without this function, runs have no baselines.
  std::function<std::optional<BaselineRecord>(const eval::OpenedTask&)> find_baselines{};
  // The present times of the control kernels. If they have to be measured, the function uses this
  // evaluator, which must then be able to keep two tasks open.
  std::function<Result<std::vector<ControlTime>>(const Context&, eval::EvaluatorClient&,
                                                 const eval::OpenedTask&)>
      controls{};
};
Parts real_parts();

Result<RunResult> optimize_with(const Parts& parts, const Context& ctx, store::Store& store,
                                const OptimizeSettings& settings, RunObserver& observer);
Result<RunResult> resume_with(const Parts& parts, const Context& ctx, store::Store& store,
                              const std::string& run, RunObserver& observer);

// An evaluator with the run's task open. A start that fails is tried once more.
struct Opened {
  std::unique_ptr<eval::EvaluatorClient> evaluator;
  eval::OpenedTask task;
};
Result<Opened> open_task(const Parts& parts, const Context& ctx, const OptimizeSettings& settings,
                         RunObserver& observer);

}  // namespace cutegen::engine
