// SPDX-License-Identifier: Apache-2.0
// The text that commands such as `optimize` print during a run: the task, and one line for each
// step. See end_text.h for the text at the end of a run, and run_json.h for JSON.
//
// Contract: the functions sanitize all text that comes from models, programs and tools, and label
// modelled times. All texts end with a newline.
//
// Example: print_text(task_text(view)); for (auto& s : view.steps) print_text(step_line(view, s));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

// Describes the task, its workload, the machine, the floor (the least possible time), the
// baselines, the toolchain, the sandbox, and whether degenerate solutions (such as zeros) fail.
std::string task_text(const RunView& view);
// Returns the baseline times of the user's module, or an empty text if the times are unknown.
std::string baselines_text(const RunView& view);
// Returns the table header for step_line(). On a GPU, the table also has columns for the SM clock
// and for the speedup over the incumbent at each step.
std::string step_header(const RunView& view);
// Returns a line with the step's id, time, ratios, decision, evaluation time, the run's clock, the
// change, and the error if the program failed.
std::string step_line(const RunView& view, const RunStep& step);
// Returns the state of the run: "interrupted" until an event says that the run finished.
const char* state_of(const RunView& view);

}  // namespace cutegen::engine
