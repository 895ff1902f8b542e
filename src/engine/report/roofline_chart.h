// SPDX-License-Identifier: Apache-2.0
// The roofline of a report as an inline SVG: the GPU's peak at each ratio of arithmetic to memory
// traffic, with the module before and the best program after.
//
// Contract: the SVG contains only numbers; the legend is foreign text. Before: the fastest known
// baseline in the math mode, else the first correct program of the run. A point whose traffic was
// not counted is placed at the task's least bytes, and the legend says so. The chart is empty if
// the task has no arithmetic, no time, or a GPU without a description.
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
