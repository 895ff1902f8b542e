// SPDX-License-Identifier: Apache-2.0
// Fills the parts of the report page about speedups: saved launches and bytes, the roofline, the
// certificate, and imported verdicts.
//
// Contract: add_gain() sets the template's variables `gain`, `roofline`, `certificate` or
// `no_certificate`, and `imported`. Variables without content stay unset. Every figure has a label
// that names its origin.
//
// Example: add_gain(page, view);
#pragma once

#include "engine/record/view.h"
#include "engine/report/report_parts.h"

namespace cutegen::engine {

void add_gain(ReportData& page, const RunView& view);
// Returns the step's speedup over the incumbent at that step, as "1.052x [1.049,1.055]", or "-" if
// the evaluator did not time the two programs alternately.
std::string in_turn_text(const RunStep& step);

}  // namespace cutegen::engine
