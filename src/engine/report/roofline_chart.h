// SPDX-License-Identifier: Apache-2.0
// The roofline of a report: what the GPU gives at each ratio of arithmetic to memory traffic, with
// the module before and the best program after, as an inline SVG.
//
// Contract: numbers only in the SVG; the legend is foreign text. Before: the fastest known baseline
// in the math mode, else the first correct program of the run. Where traffic was not counted a
// point stands at the task's least bytes, and the legend says so. Empty where the task has no
// arithmetic, no time, or a GPU that no file describes.
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
