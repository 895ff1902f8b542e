// SPDX-License-Identifier: Apache-2.0
// What the commands of a run print, as text and as JSON: the task, one line for each step, the end.
//
// Contract: sanitizes all text that comes from models, programs and tools. Marks modelled times as
// such. Texts end with a newline.
//
// Example: print_text(task_text(view)); for (auto& s : view.steps) print_text(step_line(view, s));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

// Task, class, machine, floor, baselines, toolchain, sandbox, admission: what there is to win.
std::string task_text(const RunView& view);
// The baselines of the user's module; empty while they are not known.
std::string baselines_text(const RunView& view);
// On a GPU it has a column for the speedup over the incumbent of that time, and one for the SM
// clock.
std::string step_header(const RunView& view);
// Id, time, ratios, decision, cost of the evaluation, the run's clock, the change, and the fault if
// there is one.
std::string step_line(const RunView& view, const RunStep& step);
// Why the run stopped; the best program against the first one, the floor and the baselines;
// savings, certificate, cost, limits and written files.
std::string end_text(const RunView& view, const std::string& run_id);
Json step_json(const RunStep& step);
// schema cutegen.run.v1: what `optimize --json`, `resume --json` and `show --json` print.
Json run_json(const RunView& view, const std::string& run_id);
// "interrupted" until an event says that the run finished.
const char* state_of(const RunView& view);

}  // namespace cutegen::engine
