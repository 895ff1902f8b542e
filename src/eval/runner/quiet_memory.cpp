// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/quiet_memory.h"

#include <algorithm>

namespace cutegen::eval {

void QuietMemory::note(const std::map<std::string, double>& state, Clock::time_point now) {
  const auto median = state.find("cooling_ns"), least = state.find("cooling_least_ns");
  median_ns_.reset();
  if (median == state.end() || least == state.end() || !(least->second > 0)) return;
  median_ns_ = median->second;
  least_ns_ = first_ ? std::min(least_ns_, least->second) : least->second;
  if (!first_) first_ = now;
  last_ = now;
}

}  // namespace cutegen::eval
