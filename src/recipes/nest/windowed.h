// SPDX-License-Identifier: Apache-2.0
// Windowed stages: stages that compute a convolution or pooling, fused with the pointwise operators
// that follow.
//
// Contract: window_stage() returns a stage that stores the result of the convolution or pooling
// (the window). fuse_after_windows() moves a window into the stage that reads its result, so that
// the result needs no scratch memory. fuse_after_windows() moves the window if no other stage reads
// the result, the reading stage reads each element once, and `fits` accepts the joined stage. The
// joined stage may reduce over the channels, but not over other axes.
//
// Example: relu(conv(x) + bias) -> one stage: relu(leaf + bias), with conv(x) as the window
#pragma once

#include <functional>

#include "recipes/nest/nest.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

Result<Fused> window_stage(const Region& region, const Window& window, const Value& result);
void fuse_after_windows(Stages& stages, const std::map<std::string, std::string>& names,
                        const std::function<bool(const Fused&)>& fits);

}  // namespace cutegen::recipes
