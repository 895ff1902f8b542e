// SPDX-License-Identifier: Apache-2.0
// The run loop with the real evaluator, the real proposers and the steady clock.
#include "engine/run.h"

#include <chrono>

#include "engine/loop.h"

namespace cutegen {

Parts real_parts() {
  return {
      [](const Context& ctx, const EvaluatorOptions& o) { return EvaluatorClient::start(ctx, o); },
      [](const std::string& model, const Task& task) { return make_proposer(model, task); },
      [] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
                   Clock::now().time_since_epoch())
            .count();
      }};
}

Result<RunOutcome> optimize(const Context& ctx, Store& store, const OptimizeSettings& settings,
                            RunObserver& observer) {
  CG_CHECK(check_model(settings.model));
  return optimize_with(real_parts(), ctx, store, settings, observer);
}

Result<RunOutcome> resume_run(const Context& ctx, Store& store, const std::string& run,
                              RunObserver& observer) {
  return resume_with(real_parts(), ctx, store, run, observer);
}

Result<RunOutcome> replay_run(const Context& ctx, Store& store, const std::string& run,
                              RunObserver& observer) {
  return replay_with(real_parts(), ctx, store, run, observer);
}

}  // namespace cutegen
