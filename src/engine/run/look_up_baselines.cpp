// SPDX-License-Identifier: Apache-2.0
#include "engine/run/look_up_baselines.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cutegen::engine {
namespace {

constexpr double kBuildSeconds = 60;

// Returns the cached baselines. If they are not usable now, returns nothing, and `note` says why.
std::optional<TaskBaselines> kept(const Parts& parts, const Context& ctx,
                                  eval::EvaluatorClient& evaluator, const eval::OpenedTask& opened,
                                  RunObserver& observer, std::string& note) {
  auto record = parts.find_baselines(opened);
  if (!record) {
    note = "there are no cached baselines (cutegen baselines FILE measures all)";
    return std::nullopt;
  }
  observer.on_progress("timing the control kernels");
  auto controls = parts.controls(ctx, evaluator, opened);
  CarriedOver now;
  if (controls)
    now = carried_over(*record, *controls);
  else
    now.why = controls.error().message;
  if (!now.why.empty()) {
    note = fmt::format("the cached baselines of {} are not used: {}", record->measured, now.why);
    return std::nullopt;
  }
  return TaskBaselines{.times = std::move(now.times),
                       .note = fmt::format("cached times of {}, scaled by {:.3f}: the control "
                                           "kernels' time now over their time then",
                                           record->measured, now.ratio)};
}

}  // namespace

bool wants_baselines(const OptimizeSettings& settings) {
  return settings.baselines && settings.evaluator.device.is_gpu();
}

Result<TaskBaselines> look_up_baselines(const Parts& parts, const Context& ctx,
                                        eval::EvaluatorClient& evaluator,
                                        const eval::OpenedTask& opened, RunObserver& observer) {
  TaskBaselines out;
  if (auto found = kept(parts, ctx, evaluator, opened, observer, out.note))
    return std::move(*found);
  CG_CHECK(ctx.check("looking up baselines"));
  eval::BaselinesRequest request;
  request.build_seconds = kBuildSeconds;
  request.task = opened.task.id;
  // If the task demands fp32 convolutions, plain eager is too coarse to be its only baseline.
  if (class_of(BaselineKind::eager, opened.task).coarser)
    request.baselines.push_back({.kind = BaselineKind::eager_fp32});
  auto times = evaluator.time_baselines(
      ctx, request, [&](const std::string& line) { observer.on_progress("baseline: " + line); });
  CG_CHECK(ctx.check("timing eager"));
  if (times)
    out.times = std::move(*times);
  else
    out.note += "; eager could not be timed: " + times.error().message;
  out.note = sanitize(out.note, 600);
  return out;
}

}  // namespace cutegen::engine
