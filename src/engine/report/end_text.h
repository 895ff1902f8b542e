// SPDX-License-Identifier: Apache-2.0
// What the commands of a run print as text at its end.
//
// Contract: says why the run stopped, compares the best program with the first one, the floor and
// the baselines, and lists savings, certificate, cost, limits and written files. Sanitizes foreign
// text. Marks modelled times as such.
//
// Example: print_text(end_text(view, run_id));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

std::string end_text(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
