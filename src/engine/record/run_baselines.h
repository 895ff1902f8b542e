// SPDX-License-Identifier: Apache-2.0
// The baselines that a run knows, and the speedups of its best program over them.
//
// Contract: the engine scales cached baselines (engine/run/baseline_cache.h) to the present speed
// of the GPU, which it finds by timing control kernels. If it cannot use cached baselines, it times
// eager once. `note` says which case applies and why. Gains are speedups of a cold call; a baseline
// without a time has no gain. The events `baselines` and `compared` hold this JSON.
//
// Example: for (const BaselineGain& g : gains(*view.baselines, mode, ns)) use(g.kind, g.speedup);
#pragma once

#include "core/baseline.h"

namespace cutegen::engine {

// One more kind of baseline: the source kernel of a task that is a CUDA kernel.
inline constexpr const char* kSource = "source";

BaselineTime source_baseline(const Timing& timing);

struct TaskBaselines {
  std::vector<BaselineTime> times;
  std::string note;
};

struct BaselineGain {
  std::string kind;
  double time_ns = 0, speedup = 0;
  Origin origin = Origin::measured;
  bool in_mode = true;  // the baseline's precision respects the task's math mode
};
std::vector<BaselineGain> gains(const TaskBaselines& baselines, MathMode mode, double own_ns);
// The gain over the fastest baseline in the task's math mode.
std::optional<BaselineGain> hardest_gain(const TaskBaselines& baselines, MathMode mode,
                                         double own_ns);

using cutegen::to_json;

void fields(Fields& v, TaskBaselines& baselines);
void fields(Fields& v, BaselineGain& gain);

}  // namespace cutegen::engine
