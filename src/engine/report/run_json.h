// SPDX-License-Identifier: Apache-2.0
// A run as JSON, schema cutegen.run.v1: what `optimize --json`, `resume --json` and `show --json`
// print.
//
// Contract: keys carry units. A field that the run does not have is null or missing.
//
// Example: print_result(g, run_json(view, run_id), end_text(view, run_id));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

Json step_json(const RunStep& step);
Json run_json(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
