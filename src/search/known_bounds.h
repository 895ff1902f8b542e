// SPDX-License-Identifier: Apache-2.0
// KnownBounds: the bounds on a task's time that a strategy knows from the event `task`.
//
// Contract: a bound is 0 if it is unknown. Journals of older versions contain only the floor. The
// bounds are in nanoseconds (docs/bounds.md).
//
// Example: bounds = KnownBounds::of(event.data); if (auto end = bounds.nothing_to_win(ns, s)) ...
#pragma once

#include "search/strategy.h"

namespace cutegen::search {

struct KnownBounds {
  double floor_ns = 0, reachable_ns = 0, roofline_ns = 0;
  bool memory_bound = false, launch_bound = false;

  static KnownBounds of(const Json& task);
  // Adds the known bounds to a question.
  void put(Json& context) const;
  // Returns why the search must end if `best_ns` is at the floor, or near the reachable bound of a
  // memory-bound or launch-bound task. Only the floor proves that no program is faster.
  std::optional<std::string> nothing_to_win(double best_ns, const StrategySettings& settings) const;
};

}  // namespace cutegen::search
