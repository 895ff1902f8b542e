// SPDX-License-Identifier: Apache-2.0
// Summarises how much algebraic rewrites contributed to the speedups of a bench, as opposed to
// faster kernels.
//
// Contract: each task is in one of three groups:
// - `constant`: the module's result is the same for all inputs.
// - `rewritten`: rewrites changed the graph of the best program.
// - `as_written`: no rewrite changed the graph of the best program.
// `possible` lists tasks to which more rewrites would apply.
//
// Example: RewriteSummary s = rewrite_summary(report.rows); s.rewritten.against_best
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

struct RewriteGroup {
  int64_t tasks = 0, correct = 0;
  std::optional<double> against_best;  // geometric mean of speedups over the best baseline
  std::optional<double> over_floor;    // geometric mean of time / floor (least possible time)
};

struct RewriteSummary {
  RewriteGroup rewritten, as_written, constant;
  std::vector<std::string> possible;  // "14_Gemm: sum-of-product"
  bool empty() const { return rewritten.tasks + constant.tasks == 0 && possible.empty(); }
};

RewriteSummary rewrite_summary(const std::vector<BenchRow>& rows);
// Returns the names of the rules that changed the graph of the task's best program, such as
// "sum-of-product, one-element".
std::string applied_rewrites(const BenchRow& row);
// Returns the summary as text, or an empty text if no rewrite applies to any task.
std::string rewrite_summary_text(const std::vector<BenchRow>& rows);
Json rewrite_summary_json(const std::vector<BenchRow>& rows);

}  // namespace cutegen::engine
