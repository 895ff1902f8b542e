// SPDX-License-Identifier: Apache-2.0
#include "search/profiling.h"

#include <algorithm>

#include "base/text.h"

namespace cutegen::search {

int Profiling::fixed_depth(const std::string& workload) {
  int depth = 0;
  for (const std::string& part : split(workload, '+')) {
    bool heavy = part == "matmul" || part == "attention" || part == "recurrent" ||
                 part.ends_with("conv") || part == "depthwise";
    depth = std::max(depth, heavy ? 6 : part == "loss" ? 3 : part == "elementwise" ? 2 : 5);
  }
  return depth;
}

Profiling::Profiling(ProfilingMode mode, const std::string& workload)
    : mode_(mode), threshold_(fixed_depth(workload)), open_(mode == ProfilingMode::from_start) {}

void Profiling::step(bool correct, bool structure_changed, double best_ns) {
  if (correct) ++depth_;
  steady_ = structure_changed ? 0 : steady_ + 1;
  times_.push_back(best_ns);
  if (times_.size() > kWindow + 1) times_.pop_front();
  if (mode_ == ProfilingMode::delayed && depth_ > threshold_) open_ = true;
  if (mode_ != ProfilingMode::adaptive || times_.size() <= kWindow) return;
  bool flat = times_.back() > times_.front() * (1 - kFlat);
  if (steady_ >= static_cast<int>(kWindow) && flat) open_ = true;
}

}  // namespace cutegen::search
