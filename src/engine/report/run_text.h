// SPDX-License-Identifier: Apache-2.0
// What the commands of a run print as text: the task and one line for each step. The end of a run
// is in end_text.h, its JSON in run_json.h.
//
// Contract: sanitizes all text that comes from models, programs and tools. Marks modelled times as
// such. Texts end with a newline.
//
// Example: print_text(task_text(view)); for (auto& s : view.steps) print_text(step_line(view, s));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

// Describes task, class, machine, floor, baselines, toolchain, sandbox and admission.
std::string task_text(const RunView& view);
// The baselines of the user's module; empty while they are not known.
std::string baselines_text(const RunView& view);
// The header over step_line(). On a GPU, it has columns for the speedup over the incumbent at that
// step and for the SM clock.
std::string step_header(const RunView& view);
// Id, time, ratios, decision, cost of the evaluation, the run's clock, the change, and the fault if
// there is one.
std::string step_line(const RunView& view, const RunStep& step);
// "interrupted" until an event says that the run finished.
const char* state_of(const RunView& view);

}  // namespace cutegen::engine
