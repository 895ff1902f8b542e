// SPDX-License-Identifier: Apache-2.0
// The option --fail-under RATIO: checks whether the best program's speedup over the baseline is at
// least RATIO.
//
// Contract: the speedup is a baseline's time divided by the program's time, both with a cold L2.
// The baseline is the fastest of those with which candidates compete in the task's math mode
// (in_math_mode() in core/baseline.h). If the run has a certificate, the speedup comes from the
// certificate. On a simulator, which times no baseline, the first correct program takes the place
// of the baseline. The lower end of the speedup's 95% confidence interval must be at least RATIO.
// If no speedup is known, reaches() returns false.
//
// Example: if (!reaches(view, 1.05)) return kExitBelow;
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

enum class GainFrom { certificate, baselines, first };
Names<GainFrom> enum_names(GainFrom);

struct BestGain {
  double ratio = 0, low = 0;
  std::string against;  // a baseline, or "the first correct program"
  GainFrom by = GainFrom::first;
};
std::optional<BestGain> best_gain(const RunView& view);
// Returns the speedup in the certificate, or nothing if the certificate has no baseline that
// competes in the math mode.
std::optional<BestGain> certified_gain(const Certificate& certificate, MathMode mode);
bool reaches(const std::optional<BestGain>& gain, double wanted);
// Returns text such as "at least 1.043x over compile (certified, cold; median 1.051x)", or the
// reason why no speedup is known.
std::string to_text(const std::optional<BestGain>& gain);
Json to_json(const BestGain& gain);

}  // namespace cutegen::engine
