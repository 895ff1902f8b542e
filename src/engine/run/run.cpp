// SPDX-License-Identifier: Apache-2.0
// The run loop with the real evaluator, the real proposers and the steady clock.
#include "engine/run/run.h"

#include <chrono>
#include <cmath>

#include "base/log.h"
#include "engine/run/baseline_cache.h"
#include "engine/run/loop.h"
#include "eval/api/controls.h"
#include "llm/models.h"

namespace cutegen::engine {

namespace {

// Reads the model calls of an earlier run, for replay:RUN.
Result<std::vector<llm::Exchange>> recording_of(store::Store& store, const std::string& run) {
  CG_TRY(std::string id, store.resolve(run));
  CG_TRY(auto events, store.read(id));
  llm::Recording recording;
  for (const Event& event : events) CG_CHECK(recording.apply(event.type, event.data));
  return recording.exchanges();
}

Result<std::unique_ptr<llm::ChatModel>> open_model(const OptimizeSettings& settings,
                                                   store::Store& store) {
  const ModelSettings& m = settings.model_settings;
  llm::ModelConfig config;
  config.url = m.url;
  config.key_file = m.key_file;
  config.prices_file = m.prices;
  config.relay_wait = std::chrono::minutes(int64_t(std::ceil(m.relay_minutes)));
  config.recording = [&store](const std::string& run) { return recording_of(store, run); };
  return llm::open_model(settings.model, config);
}

// Reuses times that are younger than BaselineCache::kFresh.
Result<std::vector<ControlTime>> controls_of_now(const Context& ctx,
                                                 eval::EvaluatorClient& evaluator,
                                                 const eval::OpenedTask& opened) {
  const BaselineCache cache;
  if (auto recent = cache.controls(opened.gpu, opened.driver)) return std::move(*recent);
  CG_TRY(auto controls, eval::time_controls(ctx, evaluator));
  if (auto kept = cache.keep_controls(opened.gpu, opened.driver, controls); !kept)
    log_info("cutegen could not keep the times of the control kernels: {}", kept.error().message);
  return controls;
}

}  // namespace

Parts real_parts() {
  return {
      .start_evaluator =
          [](const Context& ctx, const eval::EvaluatorOptions& o) {
            return eval::EvaluatorClient::start(ctx, o);
          },
      .make_proposer =
          [](const OptimizeSettings& settings, const eval::OpenedTask& task) {
            return make_proposer(settings.model, task, settings.rewrites);
          },
      .now_ms =
          [] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                       Clock::now().time_since_epoch())
                .count();
          },
      .open_model = open_model,
      .find_baselines = [](const eval::OpenedTask& opened) { return BaselineCache().find(opened); },
      .controls = controls_of_now};
}

Result<RunResult> optimize(const Context& ctx, store::Store& store,
                           const OptimizeSettings& settings, RunObserver& observer) {
  CG_CHECK(check_model(settings.model));
  return optimize_with(real_parts(), ctx, store, settings, observer);
}

Result<RunResult> resume_run(const Context& ctx, store::Store& store, const std::string& run,
                             RunObserver& observer) {
  return resume_with(real_parts(), ctx, store, run, observer);
}

}  // namespace cutegen::engine
