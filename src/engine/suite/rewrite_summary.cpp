// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/rewrite_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "engine/suite/bench_summary.h"
#include "engine/suite/row_text.h"
#include "recipes/algebra/rewrites.h"

namespace cutegen::engine {
namespace {

bool is_constant(const BenchRow& row) {
  const std::string rule = to_string(recipes::RewriteRule::constant_result);
  return std::any_of(row.rewrites.begin(), row.rewrites.end(),
                     [&](const Rewrite& r) { return r.rule == rule; });
}

bool is_rewritten(const BenchRow& row) {
  return std::any_of(row.rewrites.begin(), row.rewrites.end(),
                     [](const Rewrite& r) { return r.applied; });
}

template <class Belongs>
RewriteGroup group_of(const std::vector<BenchRow>& rows, Belongs belongs) {
  RewriteGroup group;
  std::vector<double> gains, floors;
  for (const BenchRow& row : rows) {
    if (!belongs(row)) continue;
    ++group.tasks;
    if (row.status != RowStatus::correct) continue;
    ++group.correct;
    if (auto gain = speedup_against(row, kBest)) gains.push_back(*gain);
    if (auto ratio = row.floor_ratio()) floors.push_back(*ratio);
  }
  group.against_best = geometric_mean(gains);
  group.over_floor = geometric_mean(floors);
  return group;
}

std::string group_line(const char* name, const RewriteGroup& group) {
  return fmt::format("{:<24} {:>6} {:>8} {:>13} {:>14}\n", name, group.tasks, group.correct,
                     ratio_text(group.against_best), ratio_text(group.over_floor));
}

Json group_json(const RewriteGroup& group) {
  return {{"tasks", group.tasks},
          {"correct", group.correct},
          {"geomean_against_best", optional_json(group.against_best)},
          {"geomean_over_floor", optional_json(group.over_floor)}};
}

}  // namespace

RewriteSummary rewrite_summary(const std::vector<BenchRow>& rows) {
  RewriteSummary s;
  s.constant = group_of(rows, is_constant);
  s.rewritten =
      group_of(rows, [](const BenchRow& row) { return is_rewritten(row) && !is_constant(row); });
  s.as_written =
      group_of(rows, [](const BenchRow& row) { return !is_rewritten(row) && !is_constant(row); });
  for (const BenchRow& row : rows) {
    std::vector<std::string> rules;
    for (const Rewrite& rewrite : row.rewrites)
      if (!rewrite.applied) rules.push_back(rewrite.rule);
    if (!rules.empty()) s.possible.push_back(row.task.name + ": " + join(rules, ", "));
  }
  return s;
}

std::string applied_rewrites(const BenchRow& row) {
  std::vector<std::string> rules;
  for (const Rewrite& rewrite : row.rewrites)
    if (rewrite.applied) rules.push_back(rewrite.rule);
  return join(rules, ", ");
}

std::string rewrite_summary_text(const std::vector<BenchRow>& rows) {
  const RewriteSummary s = rewrite_summary(rows);
  if (s.empty()) return {};
  std::string out = fmt::format("\n{:<24} {:>6} {:>8} {:>13} {:>14}\n", "algebra", "tasks",
                                "correct", "against best", "time / floor");
  out += group_line("rewritten", s.rewritten) + group_line("as written", s.as_written) +
         group_line("constant by construction", s.constant);
  for (const std::string& task : s.possible)
    out += "not used (--rewrites)    " + one_line(task, 200) + "\n";
  return out;
}

Json rewrite_summary_json(const std::vector<BenchRow>& rows) {
  const RewriteSummary s = rewrite_summary(rows);
  if (s.empty()) return {};
  return {{"rewritten", group_json(s.rewritten)},
          {"as_written", group_json(s.as_written)},
          {"constant", group_json(s.constant)},
          {"possible", s.possible}};
}

}  // namespace cutegen::engine
