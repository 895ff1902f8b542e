// SPDX-License-Identifier: Apache-2.0
// Windowed stages: a convolution or pooling as a stage, fused with the pointwise work after it.
//
// Contract: window_stage() makes a stage that stores the result of the convolution or pooling (the
// window). fuse_after_windows() moves the window into the stage that reads its result, if only that
// stage reads it, once and element by element, and if the joined stage `fits`. The result then
// needs no scratch. The stage may reduce over the channels, and nothing else.
//
// Example: relu(conv(x) + bias) -> one stage: relu(leaf + bias), window: conv(x)
#pragma once

#include <functional>

#include "recipes/nest/nest.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

Result<Fused> window_stage(const Region& region, const Window& window, const Value& result);
void fuse_after_windows(Stages& stages, const std::map<std::string, std::string>& names,
                        const std::function<bool(const Fused&)>& fits);

}  // namespace cutegen::recipes
