// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/bench_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <kainjow/mustache.hpp>

#include "base/text.h"
#include "engine/suite/bench_accuracy.h"
#include "engine/suite/bench_summary.h"
#include "engine/suite/rewrite_summary.h"
#include "engine/suite/row_text.h"

namespace cutegen::engine {

const std::map<std::string, std::string>& report_templates();  // embedded

namespace {

using kainjow::mustache::data;
using Kind = data::type;

constexpr double kWidest = 16;  // speedup at which a bar is full; bars are logarithmic

data text(const std::string& value, size_t limit = 300) {
  return data(sanitize(value, limit));
}

data cell(const std::string& value) {
  data out(Kind::object);
  out.set("value", text(value));
  return out;
}

data card(const std::string& label, const std::string& value) {
  data out(Kind::object);
  out.set("label", text(label));
  out.set("value", text(value));
  return out;
}

const SpeedSummary* find(const std::vector<SpeedSummary>& all, const std::string& against) {
  for (const SpeedSummary& s : all)
    if (s.against == against && s.workload.empty()) return &s;
  return nullptr;
}

data cards(const std::vector<BenchRow>& rows, const std::vector<SpeedSummary>& speeds) {
  data out(Kind::list);
  const FloorSummary floor = floor_summaries(rows).front();
  const auto correct = std::count_if(
      rows.begin(), rows.end(), [](const BenchRow& r) { return r.status == RowStatus::correct; });
  out.push_back(card("tasks", std::to_string(rows.size())));
  out.push_back(card("correct", std::to_string(correct)));
  if (const SpeedSummary* best = find(speeds, kBest)) {
    out.push_back(card("faster than the best baseline", std::to_string(best->faster)));
    out.push_back(card("geometric mean of the speedup over it", ratio_text(best->geomean)));
    out.push_back(card("median speedup over it", ratio_text(best->median)));
  }
  out.push_back(card("of the floor's time, geometric mean", ratio_text(floor.geomean)));
  return out;
}

data speed_rows(const std::vector<SpeedSummary>& speeds, bool classes) {
  data out(Kind::list);
  for (const SpeedSummary& s : speeds) {
    if (s.workload.empty() == classes) continue;
    data row(Kind::object);
    row.set("name", text(classes ? s.workload : s.against));
    for (const auto& [key, value] : {std::pair("tasks", s.tasks),
                                     {"correct", s.correct},
                                     {"compared", s.compared},
                                     {"faster", s.faster},
                                     {"twice", s.twice}})
      row.set(key, std::to_string(value));
    row.set("mean", ratio_text(s.mean));
    row.set("geomean", ratio_text(s.geomean));
    row.set("median", ratio_text(s.median));
    row.set("without", ratio_text(s.geomean_without));
    if (!s.outliers.empty()) row.set("outliers", text(join(s.outliers, ", "), 2000));
    out.push_back(row);
  }
  return out;
}

data floor_rows(const std::vector<BenchRow>& rows) {
  data out(Kind::list);
  for (const FloorSummary& f : floor_summaries(rows)) {
    data row(Kind::object);
    row.set("name", text(f.workload.empty() ? "all" : f.workload));
    row.set("tasks", std::to_string(f.tasks));
    row.set("timed", std::to_string(f.timed));
    row.set("near", std::to_string(f.near));
    row.set("half", std::to_string(f.half));
    row.set("geomean", ratio_text(f.geomean));
    row.set("worst", ratio_text(f.worst));
    out.push_back(row);
  }
  return out;
}

// Draws a bar from the middle: to the right if the program is faster, to the left if slower.
void add_bar(data& row, const std::optional<double>& speedup) {
  if (!speedup) return;
  const double part =
      std::clamp(std::log(*speedup) / std::log(kWidest), -1.0, 1.0) * 50;  // percent
  data bar(Kind::object);
  bar.set("left", fmt::format("{:.1f}", part < 0 ? 50 + part : 50));
  bar.set("width", fmt::format("{:.1f}", std::abs(part)));
  bar.set("class", std::string(part < 0 ? "slow" : "fast"));
  row.set("bar", bar);
}

data accuracy_rows(const std::vector<BenchRow>& rows) {
  data out(Kind::list);
  for (const AccuracySummary& s : accuracy_summaries(rows)) {
    data row(Kind::object);
    row.set("name", text(s.kind));
    row.set("within", std::to_string(s.within));
    row.set("outside", std::to_string(s.outside));
    row.set("not_measured", std::to_string(s.not_measured));
    row.set("coarser", std::to_string(s.coarser));
    out.push_back(row);
  }
  return out;
}

// The speedup against a baseline, and the baseline's accuracy.
data baseline_cell(const BenchRow& r, const std::string& kind) {
  data out = cell(ratio_text(speedup_against(r, kind)));
  for (const BaselineTime& t : r.baselines.value_or(TaskBaselines{}).times)
    if (t.kind == kind && t.known()) out.set("accuracy", text(measured_accuracy(t.accuracy)));
  return out;
}

std::string best_text(const BaselineTime* best) {
  if (!best) return "-";
  return fmt::format("{} {}, {}", best->kind, time_text(best->time_ns),
                     measured_accuracy(best->accuracy));
}

data task_row(const BenchRow& r, const std::vector<std::string>& kinds) {
  data row(Kind::object);
  row.set("level", std::to_string(r.task.level));
  row.set("name", text(r.task.name));
  row.set("workload", text(r.workload));
  row.set("status", text(to_string(r.status)));
  row.set("good", std::string(r.status == RowStatus::correct ? "good" : "bad"));
  row.set("time", time_text(r.best_ns));
  row.set("origin", text(r.time_origin));
  row.set("floor", ratio_text(r.floor_ratio()));
  data cells(Kind::list);
  for (const std::string& kind : kinds) cells.push_back(baseline_cell(r, kind));
  row.set("cells", cells);
  auto gain = r.hardest_gain();
  const BaselineTime* best = nullptr;
  if (auto mode = math_mode_from(r.math_mode); mode && r.baselines)
    best = best_baseline(r.baselines->times, *mode);
  row.set("best", text(best_text(best)));
  row.set("gain", ratio_text(gain ? std::optional(gain->speedup) : std::nullopt));
  add_bar(row, speedup_against(r, kBest));
  const std::string& why = r.status == RowStatus::correct ? r.diagnosis : r.reason;
  if (!why.empty()) row.set("reason", text(one_line(why, 300)));
  if (const std::string rules = applied_rewrites(r); !rules.empty())
    row.set("rewrites", text(rules));
  return row;
}

// One row for rewritten tasks, one for tasks as written, one for constant tasks.
data algebra_rows(const RewriteSummary& summary) {
  data out(Kind::list);
  for (const auto& [name, group] : {std::pair("rewritten", &summary.rewritten),
                                    {"as written", &summary.as_written},
                                    {"constant by construction", &summary.constant}}) {
    data row(Kind::object);
    row.set("name", text(name));
    row.set("tasks", std::to_string(group->tasks));
    row.set("correct", std::to_string(group->correct));
    row.set("gain", ratio_text(group->against_best));
    row.set("floor", ratio_text(group->over_floor));
    out.push_back(row);
  }
  return out;
}

data names_of(const std::vector<std::string>& names) {
  data out(Kind::list);
  for (const std::string& name : names) out.push_back(cell(name));
  return out;
}

}  // namespace

std::string bench_html(const BenchSettings& settings, const BenchReport& report) {
  const auto& rows = report.rows;
  const auto kinds = baseline_kinds(rows);
  const auto speeds = speed_summaries(rows);
  data page(Kind::object);
  page.set("device", text(settings.optimize.evaluator.device.text()));
  page.set("strategy", text(to_string(settings.optimize.strategy)));
  page.set("model", text(settings.optimize.model));
  page.set("evaluations", std::to_string(settings.optimize.search.budget.evaluations));
  page.set("state", std::string(report.interrupted ? "interrupted" : "finished"));
  page.set("cards", cards(rows, speeds));
  if (!speeds.empty()) {
    data compared(Kind::object);
    compared.set("speeds", speed_rows(speeds, false));
    compared.set("classes", speed_rows(speeds, true));
    compared.set("accuracies", accuracy_rows(rows));
    page.set("compared", compared);
  }
  page.set("outlier", fmt::format("{:g}", kOutlier));
  page.set("widest", fmt::format("{:g}", kWidest));
  page.set("floors", floor_rows(rows));
  if (const RewriteSummary algebra = rewrite_summary(rows); !algebra.empty()) {
    data section(Kind::object);
    section.set("groups", algebra_rows(algebra));
    page.set("algebra", section);
  }
  page.set("kinds", names_of(kinds));
  data tasks(Kind::list);
  for (const BenchRow& row : rows) tasks.push_back(task_row(row, kinds));
  page.set("tasks", tasks);
  kainjow::mustache::mustache page_template(
      report_templates().at("src/engine/report/bench.html.mustache"));
  CG_ASSERT(page_template.is_valid());
  return page_template.render(page);
}

}  // namespace cutegen::engine
