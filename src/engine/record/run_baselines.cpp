// SPDX-License-Identifier: Apache-2.0
#include "engine/record/run_baselines.h"

namespace cutegen::engine {
namespace {

constexpr size_t kMostTimes = 64;

}  // namespace

BaselineTime source_baseline(const Timing& timing) {
  return {.kind = kSource,
          .time_ns = timing.time_ns,
          .low_ns = timing.low_ns.value_or(timing.time_ns),
          .high_ns = timing.high_ns.value_or(timing.time_ns),
          .origin = timing.origin,
          .accuracy = {.passes = true}};
}

std::vector<BaselineGain> gains(const TaskBaselines& baselines, MathMode mode, double own_ns) {
  std::vector<BaselineGain> out;
  for (const BaselineTime& t : baselines.times)
    if (t.known() && own_ns > 0)
      out.push_back({.kind = t.kind,
                     .time_ns = t.time_ns,
                     .speedup = t.time_ns / own_ns,
                     .origin = t.origin,
                     .in_mode = in_math_mode(t, mode)});
  return out;
}

std::optional<BaselineGain> hardest_gain(const TaskBaselines& baselines, MathMode mode,
                                         double own_ns) {
  const BaselineTime* best = best_baseline(baselines.times, mode);
  if (!best || own_ns <= 0) return std::nullopt;
  return BaselineGain{.kind = best->kind,
                      .time_ns = best->time_ns,
                      .speedup = best->time_ns / own_ns,
                      .origin = best->origin};
}

void fields(Fields& v, TaskBaselines& b) {
  v.document("baselines");
  v.ignore_unknown();
  v("times", b.times, field::most(kMostTimes));
  v("note", b.note);
}

void fields(Fields& v, BaselineGain& g) {
  v("kind", g.kind);
  v("time_ns", g.time_ns);
  v("speedup", g.speedup);
  v("origin", g.origin);
  v("in_math_mode", g.in_mode);
}

}  // namespace cutegen::engine
