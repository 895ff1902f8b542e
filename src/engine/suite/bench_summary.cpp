// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/bench_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "engine/suite/row_text.h"

namespace cutegen::engine {
namespace {

constexpr double kNear = 1.1, kTwice = 2;

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (double v : values) sum += v;
  return sum / double(values.size());
}

std::optional<double> middle_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string class_of(const BenchRow& row) {
  return row.workload.empty() ? "unknown" : row.workload;
}

std::set<std::string> classes_of(const std::vector<BenchRow>& rows) {
  std::set<std::string> out;
  for (const BenchRow& row : rows) out.insert(class_of(row));
  return out;
}

SpeedSummary summary_of(const std::vector<BenchRow>& rows, const std::string& against,
                        const std::string& workload) {
  SpeedSummary s;
  s.against = against, s.workload = workload;
  std::vector<double> all, usual;
  for (const BenchRow& row : rows) {
    if (!workload.empty() && class_of(row) != workload) continue;
    ++s.tasks;
    s.correct += row.status == RowStatus::correct ? 1 : 0;
    auto ratio = speedup_against(row, against);
    if (!ratio) continue;
    all.push_back(*ratio);
    s.faster += *ratio > 1 ? 1 : 0;
    s.twice += *ratio > kTwice ? 1 : 0;
    if (*ratio > kOutlier)
      s.outliers.push_back(fmt::format("{} {:.1f}x", one_line(row.task.name, 60), *ratio));
    else
      usual.push_back(*ratio);
  }
  s.compared = int64_t(all.size());
  s.mean = mean_of(all), s.geomean = geometric_mean(all), s.median = middle_of(all);
  s.mean_without = mean_of(usual), s.geomean_without = geometric_mean(usual);
  return s;
}

FloorSummary floor_of_rows(const std::vector<BenchRow>& rows, const std::string& workload) {
  FloorSummary f;
  f.workload = workload;
  std::vector<double> ratios;
  for (const BenchRow& row : rows) {
    if (!workload.empty() && class_of(row) != workload) continue;
    ++f.tasks;
    auto ratio = row.status == RowStatus::correct ? row.floor_ratio() : std::nullopt;
    if (!ratio) continue;
    ratios.push_back(*ratio);
    f.near += *ratio <= kNear ? 1 : 0;
    f.half += *ratio <= kTwice ? 1 : 0;
    if (!f.worst || *ratio > *f.worst) f.worst = ratio;
  }
  f.timed = int64_t(ratios.size());
  f.geomean = geometric_mean(ratios);
  return f;
}

std::string speed_line(const SpeedSummary& s, const std::string& name) {
  std::string without = s.outliers.empty() ? "" : ratio_text(s.geomean_without);
  return fmt::format("{:<24} {:>5} {:>8} {:>9} {:>7} {:>7} {:>8} {:>8} {:>8} {:>9}\n",
                     one_line(name, 24).substr(0, 24), s.tasks, s.correct, s.compared, s.faster,
                     s.twice, ratio_text(s.mean), ratio_text(s.geomean), ratio_text(s.median),
                     without);
}

std::string speed_header(const char* first) {
  return fmt::format("\n{:<24} {:>5} {:>8} {:>9} {:>7} {:>7} {:>8} {:>8} {:>8} {:>9}\n", first,
                     "tasks", "correct", "compared", "fast_1", "fast_2", "mean", "geomean",
                     "median", "without");
}

std::string slower_text(const std::vector<BenchRow>& rows) {
  const auto slower = slower_rows(rows);
  if (slower.empty()) return {};
  std::string out = fmt::format("\n{} slower than the best baseline:\n", slower.size());
  for (const BenchRow* row : slower)
    out += fmt::format("  {:<44} {:>7}  {}\n", one_line(row->task.name, 44).substr(0, 44),
                       ratio_text(speedup_against(*row, kBest)), one_line(row->diagnosis, 160));
  return out;
}

Json speed_json(const SpeedSummary& s) {
  return {{"against", s.against},
          {"class", s.workload},
          {"tasks", s.tasks},
          {"fast_0", s.correct},
          {"compared", s.compared},
          {"fast_1", s.faster},
          {"fast_2", s.twice},
          {"mean", optional_json(s.mean)},
          {"geomean", optional_json(s.geomean)},
          {"median", optional_json(s.median)},
          {"outliers", s.outliers},
          {"mean_without_outliers", optional_json(s.mean_without)},
          {"geomean_without_outliers", optional_json(s.geomean_without)}};
}

}  // namespace

std::optional<double> speedup_against(const BenchRow& row, const std::string& against) {
  if (row.status != RowStatus::correct) return std::nullopt;
  if (against == kBest) {
    auto gain = row.hardest_gain();
    return gain ? std::optional(gain->speedup) : std::nullopt;
  }
  for (const BaselineGain& g : row.gains())
    if (g.kind == against) return g.speedup;
  return std::nullopt;
}

std::vector<std::string> baseline_kinds(const std::vector<BenchRow>& rows) {
  std::vector<std::string> out;
  for (const BenchRow& row : rows)
    for (const BaselineTime& t : row.baselines.value_or(TaskBaselines{}).times)
      if (std::find(out.begin(), out.end(), t.kind) == out.end()) out.push_back(t.kind);
  return out;
}

std::vector<SpeedSummary> speed_summaries(const std::vector<BenchRow>& rows) {
  std::vector<SpeedSummary> out;
  const auto kinds = baseline_kinds(rows);
  if (kinds.empty()) return out;
  for (const std::string& kind : kinds) out.push_back(summary_of(rows, kind, {}));
  out.push_back(summary_of(rows, kBest, {}));
  for (const std::string& workload : classes_of(rows))
    out.push_back(summary_of(rows, kBest, workload));
  return out;
}

std::vector<FloorSummary> floor_summaries(const std::vector<BenchRow>& rows) {
  std::vector<FloorSummary> out{floor_of_rows(rows, {})};
  for (const std::string& workload : classes_of(rows)) out.push_back(floor_of_rows(rows, workload));
  return out;
}

std::vector<const BenchRow*> slower_rows(const std::vector<BenchRow>& rows) {
  std::vector<const BenchRow*> out;
  for (const BenchRow& row : rows)
    if (speedup_against(row, kBest).value_or(1) < 1) out.push_back(&row);
  std::stable_sort(out.begin(), out.end(), [](const BenchRow* a, const BenchRow* b) {
    return speedup_against(*a, kBest) < speedup_against(*b, kBest);
  });
  return out;
}

std::string summary_text(const std::vector<BenchRow>& rows) {
  const auto speeds = speed_summaries(rows);
  if (speeds.empty()) return {};
  std::string out = speed_header("speed-up against");
  bool classes = false;
  for (const SpeedSummary& s : speeds) {
    if (!s.workload.empty() && !classes) {
      out += speed_header("against the best, class");
      classes = true;
    }
    out += speed_line(s, s.workload.empty() ? s.against : s.workload);
  }
  out +=
      "best: the fastest baseline of each task in its math mode. fast_p: number of tasks whose "
      "best\n"
      "program is correct and more than p times faster than the baseline. Means cover the compared "
      "tasks;\n"
      "without: the geometric mean without outliers.\n";
  for (const SpeedSummary& s : speeds)
    if (s.workload.empty() && !s.outliers.empty())
      out += fmt::format("outliers against {} (over {:g}x): {}\n", s.against, kOutlier,
                         join(s.outliers, ", "));
  const FloorSummary f = floor_summaries(rows).front();
  out += fmt::format(
      "floor: {} timed, geometric mean {} the floor, {} within {:g}x, {} within "
      "{:g}x\n",
      f.timed, ratio_text(f.geomean), f.near, kNear, f.half, kTwice);
  return out + slower_text(rows);
}

std::string summary_csv(const std::vector<BenchRow>& rows) {
  std::string out =
      "against,class,tasks,fast_0,compared,fast_1,fast_2,mean,geomean,median,outliers,"
      "mean_without_outliers,geomean_without_outliers\n";
  for (const SpeedSummary& s : speed_summaries(rows))
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_text(s.against),
                       csv_text(s.workload), s.tasks, s.correct, s.compared, s.faster, s.twice,
                       csv_number(s.mean), csv_number(s.geomean), csv_number(s.median),
                       csv_text(join(s.outliers, "; ")), csv_number(s.mean_without),
                       csv_number(s.geomean_without));
  return out;
}

Json summary_json(const std::vector<BenchRow>& rows) {
  Json speeds = Json::array(), floors = Json::array(), slower = Json::array();
  for (const SpeedSummary& s : speed_summaries(rows)) speeds.push_back(speed_json(s));
  for (const FloorSummary& f : floor_summaries(rows))
    floors.push_back({{"class", f.workload},
                      {"tasks", f.tasks},
                      {"timed", f.timed},
                      {"within_1.1", f.near},
                      {"within_2", f.half},
                      {"geomean", optional_json(f.geomean)},
                      {"worst", optional_json(f.worst)}});
  for (const BenchRow* row : slower_rows(rows)) slower.push_back(row->task.key());
  return {{"speedups", std::move(speeds)},
          {"roofline", std::move(floors)},
          {"slower_than_best", std::move(slower)}};
}

}  // namespace cutegen::engine
