// SPDX-License-Identifier: Apache-2.0
// The run loop with its dependencies as parameters, so that tests can pass fakes.
//
// Contract: the functions obey the contract in engine/run/run.h. `Parts` provides the evaluator,
// the proposer or the model, and the clock. Apart from `Parts`, the loop accesses only the store
// and the out folder.
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
  // Creates a proposer that does not call a language model, such as `builtin`.
  std::function<Result<std::unique_ptr<Proposer>>(const OptimizeSettings&, const eval::OpenedTask&)>
      make_proposer;
  std::function<int64_t()> now_ms;  // any steady clock
  // Opens the language model for a proposer that calls a language model. For the model
  // `replay:RUN`, the store has the recorded answers.
  std::function<Result<std::unique_ptr<llm::ChatModel>>(const OptimizeSettings&, store::Store&)>
      open_model{};
  // Finds a task's cached baselines; without this function, runs have no baselines.
  std::function<std::optional<BaselineRecord>(const eval::OpenedTask&)> find_baselines{};
  // Returns the present times of the control kernels (fixed kernels that show the GPU's speed). To
  // time the kernels, the function opens a task in the given evaluator, which must be able to keep
  // two tasks open.
  std::function<Result<std::vector<ControlTime>>(const Context&, eval::EvaluatorClient&,
                                                 const eval::OpenedTask&)>
      controls{};
};
Parts real_parts();

Result<RunResult> optimize_with(const Parts& parts, const Context& ctx, store::Store& store,
                                const OptimizeSettings& settings, RunObserver& observer);
Result<RunResult> resume_with(const Parts& parts, const Context& ctx, store::Store& store,
                              const std::string& run, RunObserver& observer);

// An evaluator in which the run's task is open. If the environment fails while the evaluator opens
// the task, open_task() starts a second evaluator.
struct Opened {
  std::unique_ptr<eval::EvaluatorClient> evaluator;
  eval::OpenedTask task;
};
Result<Opened> open_task(const Parts& parts, const Context& ctx, const OptimizeSettings& settings,
                         RunObserver& observer);

}  // namespace cutegen::engine
