// SPDX-License-Identifier: Apache-2.0
// Computes the RunInfo of a run from its events, one event at a time.
//
// Contract: the RunInfo depends only on the events. Increase kRunsProjection whenever
// fold_run_info() or the columns of the table of runs change. If kRunsProjection has changed, the
// store rebuilds every row of this table from the events.
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
