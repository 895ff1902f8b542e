// SPDX-License-Identifier: Apache-2.0
#include "engine/record/run_baselines.h"

namespace cutegen::engine {
namespace {

constexpr size_t kMostTimes = 64;

}  // namespace

std::vector<BaselineGain> gains(const TaskBaselines& baselines, MathMode mode, double own_ns) {
  std::vector<BaselineGain> out;
  for (const BaselineTime& t : baselines.times)
    if (t.known() && own_ns > 0)
      out.push_back({t.kind, t.time_ns, t.time_ns / own_ns, t.origin, in_math_mode(t, mode)});
  return out;
}

std::optional<BaselineGain> hardest_gain(const TaskBaselines& baselines, MathMode mode,
                                         double own_ns) {
  const BaselineTime* best = best_baseline(baselines.times, mode);
  if (!best || own_ns <= 0) return std::nullopt;
  return BaselineGain{best->kind, best->time_ns, best->time_ns / own_ns, best->origin, true};
}

Json to_json(const TaskBaselines& b) {
  Json times = Json::array();
  for (const BaselineTime& t : b.times) times.push_back(to_json(t));
  return {{"times", std::move(times)}, {"note", b.note}};
}

Result<TaskBaselines> task_baselines_from_json(const Json& json) {
  ObjectReader r(json, "baselines");
  TaskBaselines out;
  CG_TRY(Json times, r.array("times"));
  if (times.size() > kMostTimes) return user_error("too many baselines", r.place("times"));
  for (const Json& one : times) {
    CG_TRY(BaselineTime t, baseline_time_from_json(one));
    out.times.push_back(std::move(t));
  }
  CG_TRY(out.note, r.string("note"));
  return out;
}

Json to_json(const BaselineGain& g) {
  return {{"kind", g.kind},
          {"time_ns", g.time_ns},
          {"speedup", g.speedup},
          {"origin", to_string(g.origin)},
          {"in_math_mode", g.in_mode}};
}

}  // namespace cutegen::engine
