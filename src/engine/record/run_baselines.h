// SPDX-License-Identifier: Apache-2.0
// The times of a run's baselines (PyTorch's modes, the source kernel), and the speedups of the best
// program over them.
//
// Contract: the engine scales cached times (engine/run/baseline_cache.h) to the present speed of
// the GPU. The evaluator determines this speed by timing a few fixed kernels (control kernels).
// Without usable cached times, the evaluator times PyTorch's eager mode once. `note` says whether
// the run uses cached times, or why not. A gain is a speedup with a cold L2. A baseline without a
// time has no gain. The event `baselines` contains TaskBaselines as JSON, and `compared` contains
// BaselineGains.
//
// Example: for (const BaselineGain& g : gains(*view.baselines, mode, ns)) use(g.kind, g.speedup);
#pragma once

#include "core/baseline.h"

namespace cutegen::engine {

// Name of an additional baseline if the task is a CUDA kernel: the user's own kernel.
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
  bool in_mode = true;  // whether candidates compete with the baseline (in_math_mode())
};
std::vector<BaselineGain> gains(const TaskBaselines& baselines, MathMode mode, double own_ns);
// Returns the gain over the fastest baseline with which candidates compete (in_math_mode() in
// core/baseline.h).
std::optional<BaselineGain> hardest_gain(const TaskBaselines& baselines, MathMode mode,
                                         double own_ns);

using cutegen::to_json;

void fields(Fields& v, TaskBaselines& baselines);
void fields(Fields& v, BaselineGain& gain);

}  // namespace cutegen::engine
