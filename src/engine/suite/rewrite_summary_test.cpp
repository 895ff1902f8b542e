// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/rewrite_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/suite/bench_page.h"
#include "engine/suite/bench_table.h"

namespace cutegen::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

BenchRow rewritten_row(const std::string& name, double best_ns, std::vector<Rewrite> rewrites) {
  BenchRow r;
  r.task.name = name;
  r.status = RowStatus::correct;
  r.math_mode = "fp32";
  r.best_ns = best_ns, r.floor_ns = 100;
  r.baselines = TaskBaselines{.times = {{.kind = "eager",
                                         .time_ns = 800,
                                         .low_ns = 800,
                                         .high_ns = 800,
                                         .samples = 8,
                                         .origin = Origin::cached,
                                         .far = 0,
                                         .build_s = 1,
                                         .why = ""}},
                              .note = "kept"};
  r.rewrites = std::move(rewrites);
  return r;
}

TEST(RewriteSummary, EachTaskBelongsToOneGroup) {
  const std::vector<BenchRow> rows{
      rewritten_row("1_Sum", 100,
                    {{.rule = "one-element", .effect = "", .applied = true},
                     {.rule = "sum-of-product", .effect = "", .applied = true}}),
      rewritten_row("2_Relu", 400, {}),
      rewritten_row("3_Mean", 200, {{.rule = "sum-of-product", .effect = "", .applied = false}}),
      rewritten_row("4_Zero", 100, {{.rule = "constant-result", .effect = "", .applied = false}})};
  const RewriteSummary s = rewrite_summary(rows);
  EXPECT_EQ(s.rewritten.tasks, 1);
  EXPECT_NEAR(*s.rewritten.against_best, 8, 1e-9);
  EXPECT_EQ(s.as_written.tasks, 2);
  EXPECT_NEAR(*s.as_written.over_floor, std::sqrt(8.0), 1e-9);
  EXPECT_EQ(s.constant.tasks, 1);
  EXPECT_THAT(s.possible, ElementsAre("3_Mean: sum-of-product", "4_Zero: constant-result"));
  const std::string text = rewrite_summary_text(rows);
  EXPECT_THAT(text, HasSubstr("constant by construction"));
  EXPECT_THAT(text, HasSubstr("not used (--rewrites)    3_Mean: sum-of-product"));
}

TEST(RewriteSummary, TableAndPageNameTheRulesOfRewrittenTasks) {
  BenchReport report;
  report.rows = {
      rewritten_row("1_Sum", 100,
                    {{.rule = "one-element", .effect = "", .applied = true},
                     {.rule = "sum-of-product", .effect = "", .applied = true}}),
      rewritten_row("3_Mean", 200, {{.rule = "sum-of-product", .effect = "", .applied = false}})};
  EXPECT_THAT(bench_csv(report.rows), HasSubstr(",\"one-element, sum-of-product\","));
  const std::string page = bench_html(BenchSettings(), report);
  EXPECT_THAT(page, HasSubstr("rewritten: one-element, sum-of-product"));
  EXPECT_THAT(page, HasSubstr("<h2>Algebra</h2>"));
  report.rows = {rewritten_row("2_Relu", 400, {})};
  EXPECT_THAT(bench_html(BenchSettings(), report), testing::Not(HasSubstr("Algebra")));
}

TEST(RewriteSummary, NothingIsSaidOfTasksThatAlgebraLeavesAlone) {
  const std::vector<BenchRow> rows{rewritten_row("2_Relu", 400, {})};
  EXPECT_EQ(rewrite_summary_text(rows), "");
  EXPECT_TRUE(rewrite_summary_json(rows).is_null());
}

}  // namespace
}  // namespace cutegen::engine
