// SPDX-License-Identifier: Apache-2.0
// Windowed stages: a convolution or pooling as a stage, and pointwise work fused behind it.
//
// Contract: window_stage() makes a Fused that keeps the window's result, its only leaf.
// fuse_after_windows() moves a window into the stage that reads its result if that stage alone
// reads it, once, element by element, and if the joined stage `fits`; the result then needs no
// scratch. The stage may reduce over the channels, and nothing else.
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
