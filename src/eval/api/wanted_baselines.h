// SPDX-License-Identifier: Apache-2.0
// The baselines that a user may request, and the time limits for building baselines.
//
// Contract: tables list the baselines in the order of kBaselineKinds.
//
// Example: CG_TRY(request.baselines, baselines_named({"eager", "compile"}));
#pragma once

#include "core/baseline.h"
#include "torch/worker.h"

namespace cutegen::eval {

struct BaselineLimits {
  Nanoseconds open = std::chrono::seconds(60);    // limit for building the module on the GPU
  Nanoseconds build = std::chrono::seconds(120);  // limit for building one baseline
};

inline const std::vector<std::string> kBaselineKinds{
    to_string(BaselineKind::eager), to_string(BaselineKind::eager_fp32),
    to_string(BaselineKind::eager_tf32), to_string(BaselineKind::compile),
    to_string(BaselineKind::compile_max)};

// Parses the names of baselines: "eager", ..., and at most one MODULE:CALLABLE.
Result<std::vector<torch::BaselineWanted>> baselines_named(const std::vector<std::string>& names);

}  // namespace cutegen::eval
