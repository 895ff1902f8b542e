// SPDX-License-Identifier: Apache-2.0
// Summarises the speedups of a bench on a GPU over each baseline, in a table for publication.
//
// Contract: the shares of faster tasks refer to all tasks of the bench. A task without a correct
// program, or without a time of the baseline, counts as not faster. Means are over the tasks that
// have a program's time and a baseline's time (`compared`). Because a few large speedups can
// dominate a mean, a summary lists all speedups above kOutlier and also has the means without these
// speedups. "best" (kBest) stands for the fastest baseline with which candidates of a task compete
// (in_math_mode() in core/baseline.h).
//
// Example: for (const SpeedSummary& s : speed_summaries(report.rows)) use(s.against, s.geomean);
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

inline constexpr double kOutlier = 10;
inline constexpr const char* kBest = "best";

struct SpeedSummary {
  std::string against;   // the name of a baseline, or kBest
  std::string workload;  // empty: tasks of all classes
  int64_t tasks = 0, correct = 0, compared = 0;
  // Number of compared tasks with a speedup above 1 (fast_1), and above 2 (fast_2).
  int64_t faster = 0, twice = 0;
  std::optional<double> mean, geomean, median;
  std::vector<std::string> outliers;  // task and speedup
  std::optional<double> mean_without, geomean_without;
};

// Summarises how close the times of correct programs are to the floor (the least possible time).
struct FloorSummary {
  std::string workload;  // empty: all
  int64_t tasks = 0, timed = 0;
  // near: number of tasks whose time is at most 1.1 times the floor; half: at most twice the floor.
  int64_t near = 0, half = 0;
  std::optional<double> geomean, worst;
};

// Returns first the summaries over all classes, one for each baseline and one for kBest, and then
// one summary for each class, for kBest. Returns nothing if no row has a baseline.
std::vector<SpeedSummary> speed_summaries(const std::vector<BenchRow>& rows);
std::vector<FloorSummary> floor_summaries(const std::vector<BenchRow>& rows);
// Returns the rows whose correct program is slower than the best baseline, the slowest first.
std::vector<const BenchRow*> slower_rows(const std::vector<BenchRow>& rows);
// Returns the speedup of a row over the given baseline, or over the best baseline for kBest.
std::optional<double> speedup_against(const BenchRow& row, const std::string& against);
std::vector<std::string> baseline_kinds(const std::vector<BenchRow>& rows);

std::string summary_text(const std::vector<BenchRow>& rows);
std::string summary_csv(const std::vector<BenchRow>& rows);
Json summary_json(const std::vector<BenchRow>& rows);

}  // namespace cutegen::engine
