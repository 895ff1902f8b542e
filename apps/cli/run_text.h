// SPDX-License-Identifier: Apache-2.0
// What the commands of a run print: the task, one line a step, the end; as text and as JSON.
//
// Contract: everything foreign is sanitized here. Modelled times say so. Texts end with a newline.
//
// Example: print_text(task_text(view)); for (auto& s : view.steps) print_text(step_line(view, s));
#pragma once

#include <string>

#include "engine/view.h"

namespace cutegen::cli {

// Task, class, floor, device, toolchain, sandbox, admission: what there is to win.
[[nodiscard]] std::string task_text(const RunView& view);
// What the user has today; empty while that is not known.
[[nodiscard]] std::string baselines_text(const RunView& view);
[[nodiscard]] std::string step_header();
// Id, time, against the first and the floor, decision, change and, if rejected, why.
[[nodiscard]] std::string step_line(const RunView& view, const RunStep& step);
// Why it stopped, best against first and floor, cost, limits.
[[nodiscard]] std::string end_text(const RunView& view, const std::string& run_id);
[[nodiscard]] Json step_json(const RunStep& step);
// schema cutegen.run.v1: what `optimize --json`, `resume --json` and `show --json` print.
[[nodiscard]] Json run_json(const RunView& view, const std::string& run_id);
// "interrupted" while no event says that it finished.
[[nodiscard]] const char* state_of(const RunView& view);

}  // namespace cutegen::cli
