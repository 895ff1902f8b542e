// SPDX-License-Identifier: Apache-2.0
// --fail-under: whether the best program reaches the speedup that a script demands.
//
// Contract: the speedup is over the fastest baseline in the task's math mode with a cold L2. It is
// the certified ratio if there is a certificate, else the ratio of the two times. A simulator times
// no baseline, so the first correct program replaces it. The lower end of the 95% interval must
// reach the demanded ratio. Without figures, reaches() is false.
//
// Example: if (!reaches(view, 1.05)) return kExitBelow;
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

enum class GainFrom { certificate, baselines, first };
Names<GainFrom> enum_names(GainFrom);

struct BestGain {
  double ratio = 0, low = 0;
  std::string against;  // "compile", "the first correct program"
  GainFrom by = GainFrom::first;
};
std::optional<BestGain> best_gain(const RunView& view);
// The gain that the certificate shows.
std::optional<BestGain> certified_gain(const Certificate& certificate, MathMode mode);
bool reaches(const std::optional<BestGain>& gain, double wanted);
// "at least 1.043x over compile (certified, cold; median 1.051x)", or why there is no figure.
std::string to_text(const std::optional<BestGain>& gain);
Json to_json(const BestGain& gain);

}  // namespace cutegen::engine
