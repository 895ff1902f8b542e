// SPDX-License-Identifier: Apache-2.0
// The chart of a report: time per step against the floor and the reachable bound, as an inline SVG.
//
// Contract: the SVG has only numbers and candidate ids, so it needs no escaping. It is empty if no
// step has a time. Example: std::string svg = chart_svg(view);
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

std::string chart_svg(const RunView& view);
std::string html_escape(const std::string& text);

}  // namespace cutegen::engine
