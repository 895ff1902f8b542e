// SPDX-License-Identifier: Apache-2.0
#include "search/profiling.h"

#include <algorithm>

#include "base/text.h"

namespace cutegen::search {

namespace {

// Correct programs before the first profile, by class of workload.
constexpr int kHeavy = 6, kOthers = 5;
const std::map<std::string, int> kDepths{{"matmul", kHeavy},    {"attention", kHeavy},
                                         {"recurrent", kHeavy}, {"depthwise", kHeavy},
                                         {"loss", 3},           {"elementwise", 2}};

}  // namespace

int Profiling::fixed_depth(const std::string& workload) {
  int depth = 0;
  for (const std::string& part : split(workload, '+')) {
    const auto known = kDepths.find(part);
    depth = std::max(depth, part.ends_with("conv")   ? kHeavy
                            : known == kDepths.end() ? kOthers
                                                     : known->second);
  }
  return depth;
}

Profiling::Profiling(ProfilingMode mode, const std::string& workload, int64_t evaluations)
    : mode_(mode),
      threshold_(fixed_depth(workload)),
      latest_(std::max<int64_t>(2, evaluations / 5)),
      open_(mode == ProfilingMode::from_start) {}

void Profiling::step(bool correct, bool structure_changed, double best_ns) {
  ++steps_;
  if (correct) {
    ++depth_;
    steady_ = structure_changed ? 0 : steady_ + 1;
    times_.push_back(best_ns);
    if (times_.size() > kWindow + 1) times_.pop_front();
  }
  if (mode_ == ProfilingMode::delayed && depth_ > threshold_) open_ = true;
  if (mode_ == ProfilingMode::adaptive && (settled() || (depth_ > 0 && steps_ >= latest_)))
    open_ = true;
}

bool Profiling::opens_next() const {
  return open_ || (mode_ == ProfilingMode::adaptive && steps_ + 1 >= latest_);
}

bool Profiling::settled() const {
  return times_.size() > kWindow && steady_ >= int(kWindow) &&
         times_.back() > times_.front() * (1 - kFlat);
}

}  // namespace cutegen::search
