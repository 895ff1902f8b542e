// SPDX-License-Identifier: Apache-2.0
// The 24 metrics of a kernel that the strategy `cudaforge` shows to the language model that plays
// the judge. Each metric has cutegen's name and the name of the most similar metric of Nsight
// Compute.
//
// Contract: judge_metrics() always returns the same 24 metrics in the same order. If the profile
// does not have a metric, `value` is empty, and `why` gives the reason. On the simulator, some
// metrics are counts of the executed PTX, and the other metrics are modelled. The table in
// docs/profile.md lists all metrics.
//
// Example: for (const Metric& m : judge_metrics(kernel, gpu)) if (m.value) print(m.name, *m.value);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/profile.h"
#include "gpu/spec.h"

namespace cutegen::agent {

inline constexpr size_t kJudgeMetrics = 24;

struct Metric {
  std::string name, nearest;  // name in cutegen, and the most similar metric of Nsight Compute
  std::optional<double> value;
  std::string why;  // why `value` is empty
};

std::vector<Metric> judge_metrics(const KernelProfile& kernel, const GpuSpec& gpu);
// Returns one line per metric, for each of the `most` slowest kernels.
std::string describe_metrics(const Profile& profile, const GpuSpec& gpu, size_t most);

}  // namespace cutegen::agent
