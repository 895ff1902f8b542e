// SPDX-License-Identifier: Apache-2.0
// The accuracy of the baselines in a bench: whether a candidate with the baseline's errors would be
// correct.
//
// Contract: the accuracy of a baseline counts as measured if the evaluator compared the baseline's
// results by the tolerance for candidates. Without a comparison, only the baseline's precision is
// known, from the operators of the task. A summary counts the tasks for which the baseline has a
// time.
//
// Example: for (const AccuracySummary& a : accuracy_summaries(rows)) use(a.kind, a.outside);
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

struct AccuracySummary {
  std::string kind;
  int64_t within = 0, outside = 0, not_measured = 0;
  // Number of tasks on which the baseline is less precise than the math mode, whether or not its
  // accuracy was measured.
  int64_t coarser = 0;
};

std::vector<AccuracySummary> accuracy_summaries(const std::vector<BenchRow>& rows);
// Returns text such as "fp32, 0.31 of the accepted error" or "not measured (fp32)".
std::string measured_accuracy(const BaselineAccuracy& accuracy);

// Returns the summaries as text, or an empty text if no row has a baseline.
std::string accuracy_summary_text(const std::vector<BenchRow>& rows);
Json accuracy_summary_json(const std::vector<BenchRow>& rows);

}  // namespace cutegen::engine
