// SPDX-License-Identifier: Apache-2.0
// Converts a run to JSON (schema cutegen.run.v1), for `optimize --json`, `resume --json` and `show
// --json`.
//
// Contract: the names of fields end with their units. If a run has no value for a field, the field
// is null or missing.
//
// Example: print_result(g, run_json(view, run_id), end_text(view, run_id));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

Json step_json(const RunStep& step);
Json run_json(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
