// SPDX-License-Identifier: Apache-2.0
// TimeMode: how runs on a GPU are timed.
//
// Contract: JSON and texts for people use the names that enum_names() gives.
//
// Example: TimeRequest request{.mode = TimeMode::cold, .steps = steps};
#pragma once

#include "base/names.h"

namespace cutegen {

// cold: the L2 holds unrelated data, and all launches are queued before the first begins. warm: the
// same steps ran immediately before, so the L2 holds their data. graph: like cold, but one launch
// of a CUDA graph. call: cold L2, and the host's clock measures from the first launch to the end of
// the last.
enum class TimeMode { cold, warm, graph, call };
Names<TimeMode> enum_names(TimeMode);

}  // namespace cutegen
