// SPDX-License-Identifier: Apache-2.0
// TimeMode: the condition (such as a cold or warm L2) under which the evaluator times runs on a
// GPU.
//
// Contract: JSON, reports and messages use the names of enum_names().
//
// Example: TimeRequest request{.mode = TimeMode::cold, .steps = steps};
#pragma once

#include "base/names.h"

namespace cutegen {

// `cold`: the L2 cache contains unrelated data, and the host queues all launches before the first
// kernel begins. `warm`: like `cold`, but the same launches ran immediately before, so the L2
// contains their data. `graph`: like `cold`, but as one launch of a CUDA graph. `call`: cold L2;
// the host's clock measures from the first launch call until the last kernel ends.
enum class TimeMode { cold, warm, graph, call };
Names<TimeMode> enum_names(TimeMode);

}  // namespace cutegen
