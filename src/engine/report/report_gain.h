// SPDX-License-Identifier: Apache-2.0
// The parts of the report page about the gain: before and after, the roofline, the certificate's
// table, imported verdicts.
//
// Contract: sets `gain`, `roofline`, `certificate` or `no_certificate`, and `imported`, each only
// if it has content. Every figure names its origin.
//
// Example: add_gain(page, view);
#pragma once

#include "engine/record/view.h"
#include "engine/report/report_parts.h"

namespace cutegen::engine {

void add_gain(ReportData& page, const RunView& view);
// The speedup over the incumbent at that step, timed alternately: "1.052x [1.049,1.055]", or "-".
std::string in_turn_text(const RunStep& step);

}  // namespace cutegen::engine
