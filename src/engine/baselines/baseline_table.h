// SPDX-License-Identifier: Apache-2.0
// A suite's baselines as a table for people and as JSON (schema cutegen.baseline_suite.v1).
//
// Contract: untrusted text is sanitized to one line. A baseline without a time is "-" in the table;
// each reason is listed once below the table.
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
