// SPDX-License-Identifier: Apache-2.0
// The text that commands such as `optimize` print during a run: the task, and one line for each
// step. end_text.h has the text at the end of a run, and run_json.h the JSON.
//
// Contract: the functions sanitize all text that comes from models, programs and tools, and label
// modelled times. All texts end with a newline.
//
// Example: print_text(task_text(view)); for (auto& s : view.steps) print_text(step_line(view, s));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

// Describes the task, its class, the machine, the floor, the baselines, the toolchain, the sandbox,
// and whether degenerate solutions fail.
std::string task_text(const RunView& view);
// The baseline times of the user's module. Empty as long as they are not known.
std::string baselines_text(const RunView& view);
// The table header for step_line(). On a GPU, it also has columns for the SM clock and for the
// speedup over the program that was the incumbent at that step.
std::string step_header(const RunView& view);
// The step's id, time, ratios, decision, evaluation time, the run's clock, the change, and the
// error if the program failed.
std::string step_line(const RunView& view, const RunStep& step);
// The state of the run: "interrupted" until an event says that it finished.
const char* state_of(const RunView& view);

}  // namespace cutegen::engine
