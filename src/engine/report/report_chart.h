// SPDX-License-Identifier: Apache-2.0
// Draws the chart of a report page as an inline SVG: the time of each step, the floor (no program
// is faster) and the reachable time.
//
// Contract: the SVG contains only numbers and candidate ids, so the SVG needs no escaping. The SVG
// is empty if no step has a time.
//
// Example: std::string svg = chart_svg(view);
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

std::string chart_svg(const RunView& view);
std::string html_escape(const std::string& text);

}  // namespace cutegen::engine
