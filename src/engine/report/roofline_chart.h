// SPDX-License-Identifier: Apache-2.0
// Draws the roofline chart of a report page as an inline SVG. The chart shows the GPU's peak over
// arithmetic intensity, a point for the baseline's time, and a point for the best program's time.
//
// Contract: the SVG contains only numbers; the legend contains untrusted text. The baseline is the
// fastest known baseline that competes in the task's math mode (in_math_mode() in core/baseline.h)
// or, if no baseline is known, the first correct program. For a point without counted memory
// traffic, the chart uses the bytes that every program must move, and the legend says so. The chart
// is empty if the task has no FLOPs, if no time is known, or if no file in gpus/ describes the GPU.
//
// Example: const RooflineChart c = roofline_chart(view); if (!c.svg.empty()) use(c.svg, c.legend);
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct RooflineChart {
  std::string svg, legend;
};
RooflineChart roofline_chart(const RunView& view);

}  // namespace cutegen::engine
