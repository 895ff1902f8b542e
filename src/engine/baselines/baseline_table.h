// SPDX-License-Identifier: Apache-2.0
// Converts the baselines of many tasks to a text table and to JSON (schema
// cutegen.baseline_suite.v1).
//
// Contract: the table shows each task name and each reason on one line without control characters;
// the JSON has names and reasons unchanged. The table shows "-" for a baseline without a time, and
// lists each reason once below the rows.
//
// Example: print_result(g, baseline_json(report), baseline_table(report));
#pragma once

#include "engine/baselines/baseline_suite.h"

namespace cutegen::engine {

std::string baseline_header(const std::vector<std::string>& kinds);
std::string baseline_line(const BaselineRow& row, const std::vector<std::string>& kinds);
std::string baseline_table(const BaselineReport& report, const std::vector<std::string>& kinds);
Json baseline_json(const BaselineReport& report);

}  // namespace cutegen::engine
