// SPDX-License-Identifier: Apache-2.0
// The roofline chart of a report as an inline SVG: the GPU's peak over arithmetic intensity, the
// module's point before and the best program's point after.
//
// Contract: the SVG contains only numbers; the legend contains untrusted text. The point before is
// the fastest known baseline in the math mode, else the run's first correct program. If its traffic
// was not counted, a point uses the task's least bytes, and the legend says so. The chart is empty
// if the task has no arithmetic or no time, or if no file describes its GPU.
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
