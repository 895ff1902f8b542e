// SPDX-License-Identifier: Apache-2.0
// Computes RunInfo from the events of a run, one at a time.
//
// Contract: a pure function of the events. Increase kRunsProjection whenever this function or the
// columns change; the store then rebuilds every row from the events.
//
// Example: RunInfo info; for (const Event& e : events) fold_run_info(info, e);
#pragma once

#include "store/store.h"

namespace cutegen::store {

inline constexpr int kRunsProjection = 1;

void fold_run_info(RunInfo& info, const Event& event);
using cutegen::to_json;
void fields(Fields& v, RunInfo& info);

}  // namespace cutegen::store
