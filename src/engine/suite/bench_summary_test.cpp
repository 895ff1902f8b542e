// SPDX-License-Identifier: Apache-2.0
// The summary of a bench against its baselines; golden files hold each output format.
// After a deliberate change: CUTEGEN_UPDATE_GOLDEN=1 engine_test, then read the difference.
#include "engine/suite/bench_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "engine/suite/bench_accuracy.h"
#include "engine/suite/bench_page.h"
#include "engine/suite/bench_table.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

BaselineTime kept_time(const std::string& kind, double ns) {
  return {.kind = kind,
          .time_ns = ns,
          .low_ns = ns,
          .high_ns = ns,
          .samples = 8,
          .origin = Origin::cached,
          .far = 0,
          .build_s = 1,
          .why = ""};
}

BenchRow row(int number, const std::string& name, const std::string& workload, double best_ns,
             std::vector<BaselineTime> times) {
  BenchRow r;
  r.task = {.level = 1,
            .number = number,
            .name = std::to_string(number) + "_" + name,
            .file = "/kb/" + name + ".py"};
  r.workload = workload, r.math_mode = "fp32",
  r.status = best_ns > 0 ? RowStatus::correct : RowStatus::no_recipe;
  r.time_origin = best_ns > 0 ? "measured" : "";
  r.floor_ns = 100;
  if (best_ns > 0) r.first_ns = 2 * best_ns, r.best_ns = best_ns;
  if (best_ns <= 0) r.reason = "no recipe: <conv>";
  r.evaluations = 5, r.seconds = 1.5, r.run = "20260101-abcdef", r.task_hash = "h";
  r.baselines = TaskBaselines{.times = std::move(times), .note = "kept"};
  return r;
}

BenchReport report() {
  BaselineTime missing;
  missing.kind = "compile", missing.why = "it raises";
  BenchReport out;
  out.rows = {
      row(1, "Relu", "elementwise", 105, {kept_time("eager", 210), kept_time("compile", 126)}),
      row(2, "Norm", "norm", 150, {kept_time("eager", 3000), kept_time("compile", 300)}),
      row(3, "Matmul", "matmul", 400,
          {kept_time("eager", 320), kept_time("eager-tf32", 80), missing}),
      row(4, "Conv", "conv", 0, {kept_time("eager", 500), kept_time("compile", 400)}),
      row(5, "Evil<b>", "elementwise", 200, {kept_time("eager", 400), kept_time("compile", 500)}),
  };
  out.rows[0].baselines->times[0].accuracy = {
      .precision = "fp32", .coarser = false, .share = 0.3125, .passes = true, .why = ""};
  out.rows[1].baselines->times[0].accuracy = {
      .precision = "fp32", .coarser = false, .share = 40, .passes = false, .why = "too far"};
  out.rows[2].baselines->times[1].accuracy = {.precision = "tf32", .coarser = true, .why = ""};
  out.rows[2].diagnosis = "compute bound: fma 80% of its peak";
  return out;
}

TEST(BenchSummary, EveryTaskCountsAndOutliersStandApart) {
  const auto rows = report().rows;
  const auto all = speed_summaries(rows);
  EXPECT_THAT(baseline_kinds(rows), ElementsAre("eager", "compile", "eager-tf32"));
  const SpeedSummary& eager = all[0];
  EXPECT_EQ(eager.against, "eager");
  EXPECT_EQ(eager.tasks, 5);
  EXPECT_EQ(eager.correct, 4);
  EXPECT_EQ(eager.compared, 4);
  EXPECT_EQ(eager.faster, 3);
  EXPECT_EQ(eager.twice, 1);  // 2.0 is not above 2
  EXPECT_DOUBLE_EQ(*eager.mean, (2 + 20 + 0.8 + 2) / 4);
  EXPECT_DOUBLE_EQ(*eager.median, 2);
  EXPECT_NEAR(*eager.geomean, std::pow(2 * 20 * 0.8 * 2, 0.25), 1e-12);
  EXPECT_THAT(eager.outliers, ElementsAre("2_Norm 20.0x"));
  EXPECT_NEAR(*eager.geomean_without, std::cbrt(2 * 0.8 * 2), 1e-12);
}

TEST(BenchSummary, TheBestBaselineKeepsToTheMathMode) {
  const auto all = speed_summaries(report().rows);
  const SpeedSummary& best = all[3];
  EXPECT_EQ(best.against, kBest);
  EXPECT_EQ(best.compared, 4);
  EXPECT_EQ(best.faster, 3);
  EXPECT_DOUBLE_EQ(*best.mean, (1.2 + 2 + 0.8 + 2) / 4);
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all[4].workload, "conv");
  EXPECT_EQ(all[4].compared, 0);
  EXPECT_FALSE(all[4].geomean);
}

TEST(BenchSummary, TheRooflineAndWhatIsSlower) {
  const auto rows = report().rows;
  const FloorSummary f = floor_summaries(rows).front();
  EXPECT_EQ(f.tasks, 5);
  EXPECT_EQ(f.timed, 4);
  EXPECT_EQ(f.near, 1);
  EXPECT_EQ(f.half, 3);
  EXPECT_DOUBLE_EQ(*f.worst, 4);
  ASSERT_EQ(slower_rows(rows).size(), 1U);
  EXPECT_EQ(slower_rows(rows)[0]->task.number, 3);
}

TEST(BenchSummary, SaysHowAccurateTheBaselinesAre) {
  const auto all = accuracy_summaries(report().rows);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].kind, "eager");
  EXPECT_EQ(all[0].within, 1);
  EXPECT_EQ(all[0].outside, 1);
  EXPECT_EQ(all[0].not_measured, 3);
  EXPECT_EQ(all[1].not_measured, 4);  // the fifth task has no time
  EXPECT_EQ(all[2].kind, "eager-tf32");
  EXPECT_EQ(all[2].coarser, 1);
  EXPECT_EQ(measured_accuracy({}), "not measured");
  EXPECT_EQ(measured_accuracy({"tf32", true, {}, {}, ""}),
            "not measured (tf32: coarser than the math mode)");
  EXPECT_EQ(measured_accuracy({"fp32", false, 0.3125, true, ""}),
            "fp32, 0.31 of the accepted error");
  EXPECT_THAT(bench_csv(report().rows), HasSubstr("\"fp32, 0.31 of the accepted error\",0.3125"));
}

TEST(BenchSummary, WithoutBaselinesThereIsNone) {
  auto rows = report().rows;
  for (BenchRow& r : rows) r.baselines.reset();
  EXPECT_TRUE(speed_summaries(rows).empty());
  EXPECT_EQ(summary_text(rows), "");
  EXPECT_EQ(accuracy_summary_text(rows), "");
  EXPECT_THAT(bench_csv(rows), Not(HasSubstr("best_baseline")));
}

TEST(BenchSummary, RowsAreReadBackWithTheirBaselines) {
  BenchSettings settings;
  auto back = bench_rows_from(bench_json(settings, report()));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(summary_csv(*back), summary_csv(report().rows));
  EXPECT_EQ((*back)[2].baselines->times[2].why, "it raises");
  EXPECT_EQ((*back)[2].diagnosis, report().rows[2].diagnosis);
}

TEST(BenchSummary, EachFormIsThatOfItsGoldenFile) {
  BenchSettings settings;
  settings.optimize.evaluator.device = "cuda:0";
  settings.out = "bench";
  const BenchReport r = report();
  const fs::path golden = fs::path(CUTEGEN_SOURCE_DIR) / "tests/golden/engine";
  auto check = [&](const std::string& file, const std::string& text) {
    if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
      ASSERT_TRUE(write_file(golden / file, text));
    }
    EXPECT_EQ(read_file(golden / file).value_or("no file"), text) << file;
  };
  check("summary.txt", bench_table(r.rows));
  check("summary_rows.csv", bench_csv(r.rows));
  check("summary.csv", summary_csv(r.rows));
  check("summary.json", dump_json(bench_json(settings, r), 1) + "\n");
  const std::string page = bench_html(settings, r);
  check("summary.html", page);
  EXPECT_THAT(page, Not(HasSubstr("<b>.py")));
  EXPECT_THAT(page, HasSubstr("Evil&lt;b&gt;"));
}

}  // namespace
}  // namespace cutegen::engine
