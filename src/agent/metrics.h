// SPDX-License-Identifier: Apache-2.0
// The 24 figures that the judge of `cudaforge` sees of a kernel, under names of our own, each with
// the metric of Nsight Compute that is nearest to it.
//
// Contract: always the same 24, in the same order. A figure that the profile does not give has no
// value and says why. Figures of a simulator are counted on PTX or modelled; docs/profile.md has
// the table.
//
// Example: for (const Metric& m : judge_metrics(kernel, gpu)) if (m.value) print(m.name, *m.value);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/profile.h"
#include "gpu/spec.h"

namespace cutegen {

inline constexpr size_t kJudgeMetrics = 24;

struct Metric {
  std::string name, nearest;  // ours; of Nsight Compute
  std::optional<double> value;
  std::string why;  // without a value
};

[[nodiscard]] std::vector<Metric> judge_metrics(const KernelProfile& kernel, const GpuSpec& gpu);
// A line each; of the `most` slowest kernels.
[[nodiscard]] std::string describe_metrics(const Profile& profile, const GpuSpec& gpu, size_t most);

}  // namespace cutegen
