// SPDX-License-Identifier: Apache-2.0
// --fail-under: whether the best program is as much faster as a script wants.
//
// Contract: it counts against the fastest baseline in the task's math mode, cold: the certified
// ratio where there is a certificate, else the time of the search over that baseline's. On a
// simulator, which times no baseline, the first correct program stands in. What has to reach the
// wanted ratio is the lower end of the 95% interval. Where nothing is known, nothing is reached.
//
// Example: if (!reaches(view, 1.05)) return kExitBelow;
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct BestGain {
  double ratio = 0, low = 0;
  std::string against;  // "compile", "the first correct program"
  std::string by;       // "certificate", "baselines", "first"
};
std::optional<BestGain> best_gain(const RunView& view);
// Of a certificate alone.
std::optional<BestGain> certified_gain(const Certificate& certificate, MathMode mode);
bool reaches(const std::optional<BestGain>& gain, double wanted);
// "at least 1.043x over compile (certified, cold; median 1.051x)"; why nothing is known.
std::string to_text(const std::optional<BestGain>& gain);
Json to_json(const BestGain& gain);

}  // namespace cutegen::engine
