// SPDX-License-Identifier: Apache-2.0
#include "search/known_bounds.h"

#include <fmt/format.h>

#include "gpu/spec.h"
#include "search/machine.h"

namespace cutegen::search {
namespace {

double number_at(const Json& data, const char* key) {
  auto it = data.find(key);
  return it != data.end() && it->is_number() ? it->get<double>() : 0;
}

}  // namespace

KnownBounds KnownBounds::of(const Json& task) {
  const std::string bound_by = text_at(task, "floor_bound_by");
  return {.floor_ns = number_at(task, "floor_ns"),
          .reachable_ns = number_at(task, "reachable_ns"),
          .roofline_ns = number_at(task, "roofline_ns"),
          .memory_bound = bound_by == to_string(RooflineBound::memory),
          .launch_bound = bound_by == to_string(RooflineBound::launch)};
}

void KnownBounds::put(Json& context) const {
  if (floor_ns > 0) context["floor_ns"] = floor_ns;
  if (reachable_ns > 0) context["reachable_ns"] = reachable_ns;
  if (roofline_ns > 0) context["roofline_ns"] = roofline_ns;
}

std::optional<std::string> KnownBounds::nothing_to_win(double best_ns,
                                                       const StrategySettings& settings) const {
  if (floor_ns > 0 && best_ns <= floor_ns * settings.floor_ratio) return "at the floor";
  if (reachable_ns <= 0 || best_ns > reachable_ns * settings.reach_ratio) return std::nullopt;
  const double percent = 100 * (settings.reach_ratio - 1);
  if (memory_bound) return fmt::format("within {:.3g}% of the reachable bound", percent);
  if (launch_bound && settings.end_rules >= 2)  // a launch's usual time is a rule of thumb
    return fmt::format("within {:.3g}% of the usual time of a launch and a copy", percent);
  return std::nullopt;
}

}  // namespace cutegen::search
