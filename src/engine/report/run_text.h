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
// What the user has today; empty while that is not known.
std::string baselines_text(const RunView& view);
// On a GPU with columns for the runs in turn with the best one of that time, and the SMs' clock.
std::string step_header(const RunView& view);
// Id, time, ratios, decision, what its evaluation cost, the run's clock, the change, what was
// wrong.
std::string step_line(const RunView& view, const RunStep& step);
// Why it stopped, best against first, floor and baselines, what is saved, the certified table,
// cost, limits, what was written where.
std::string end_text(const RunView& view, const std::string& run_id);
Json step_json(const RunStep& step);
// schema cutegen.run.v1: what `optimize --json`, `resume --json` and `show --json` print.
Json run_json(const RunView& view, const std::string& run_id);
// "interrupted" while no event says that it finished.
const char* state_of(const RunView& view);

}  // namespace cutegen::engine
