// SPDX-License-Identifier: Apache-2.0
// The 24 figures of a kernel that the judge of `cudaforge` sees, by cutegen's names, each with the
// nearest Nsight Compute metric.
//
// Contract: always returns the same 24 figures in the same order. A figure that the profile lacks
// has no value and a reason. A simulator counts figures on PTX or models them. docs/profile.md has
// the table.
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
  std::string name, nearest;  // cutegen's; Nsight Compute's
  std::optional<double> value;
  std::string why;  // why there is no value
};

std::vector<Metric> judge_metrics(const KernelProfile& kernel, const GpuSpec& gpu);
// One line per figure, for the `most` slowest kernels.
std::string describe_metrics(const Profile& profile, const GpuSpec& gpu, size_t most);

}  // namespace cutegen::agent
