// SPDX-License-Identifier: Apache-2.0
// Converts a comparison to a text table, to CSV and to JSON (schema cutegen.compare.v1).
//
// Contract: the JSON contains everything that `compare` needs to continue, and comparison_from()
// reads the JSON. A floor ratio is the best time divided by the floor (the least possible time).
// Means are geometric means, first over the repetitions that solved a task, then over the tasks
// that every strategy solved (common tasks). A curve shows the best result after k evaluations; if
// a run ended earlier, the curve uses its last result.
//
// Example: print_text(compare_table(settings, comparison));
#pragma once

#include "engine/suite/compare.h"
#include "engine/suite/repeat_interval.h"

namespace cutegen::engine {

struct StrategySummary {
  std::string strategy;
  int64_t cells = 0, correct = 0;  // numbers of all runs, and of runs with a correct program
  int64_t tasks = 0, solved = 0;   // numbers of all tasks, and of tasks that a run solved
  std::optional<double> floor_ratio;
  // set if each common task has at least two repetitions
  std::optional<RatioInterval> floor_ratio_interval;
  int64_t evaluations = 0;
  ModelCost models;
  double seconds = 0;
};
struct CurvePoint {
  int64_t evaluations = 0;
  int64_t correct = 0;                // runs with a correct program after k evaluations
  std::optional<double> floor_ratio;  // mean over the common tasks, if all common tasks have a time
};

// Returns the names of the tasks that every strategy solved.
std::vector<std::string> common_tasks(const std::vector<CompareCell>& cells);
std::vector<StrategySummary> summaries(const std::vector<CompareCell>& cells);
std::vector<CurvePoint> curve_of(const std::vector<CompareCell>& cells,
                                 const std::string& strategy);

std::string cell_header();
std::string cell_line(const CompareCell& cell);
std::string compare_table(const Comparison& comparison);
std::string compare_csv(const std::vector<CompareCell>& cells);
std::string curves_csv(const std::vector<CompareCell>& cells);
// Returns the settings that must be the same when `compare` continues.
Json compare_settings_json(const CompareSettings& settings);
Json compare_json(const CompareSettings& settings, const Comparison& comparison);
Result<Comparison> comparison_from(const Json& document);

}  // namespace cutegen::engine
