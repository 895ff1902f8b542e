// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "engine/suite/bench_accuracy.h"
#include "engine/suite/bench_summary.h"
#include "engine/suite/rewrite_summary.h"
#include "engine/suite/row_text.h"

namespace cutegen::engine {
namespace {

constexpr const char* kBenchSchema = "cutegen.bench.v1";

std::map<RowStatus, int64_t> counts_of(const std::vector<BenchRow>& rows) {
  std::map<RowStatus, int64_t> out;
  for (const BenchRow& r : rows) ++out[r.status];
  return out;
}

std::string baselines_csv(const BenchRow& r, const std::vector<std::string>& kinds) {
  const auto times = r.baselines.value_or(TaskBaselines{}).times;
  std::string out;
  for (const std::string& kind : kinds) {
    auto at = std::find_if(times.begin(), times.end(),
                           [&](const BaselineTime& t) { return t.kind == kind && t.known(); });
    const bool known = at != times.end();
    out += "," + csv_number(known ? std::optional(at->time_ns) : std::nullopt) + "," +
           csv_number(speedup_against(r, kind)) + "," +
           (known ? csv_text(measured_accuracy(at->accuracy)) : "") + "," +
           csv_number(known ? at->accuracy.share : std::nullopt);
  }
  auto mode = math_mode_from(r.math_mode);
  const BaselineTime* best = mode ? best_baseline(times, *mode) : nullptr;
  return out + "," + (best ? csv_text(best->kind) : "") + "," +
         csv_number(speedup_against(r, kBest)) + "," +
         (r.diagnosis.empty() ? "" : csv_text(r.diagnosis));
}

}  // namespace

void fields(Fields& v, BenchRow& r) {
  v.ignore_unknown();
  v("level", r.task.level);
  v("number", r.task.number);
  v("name", r.task.name);
  v("file", r.task.file);
  v("task_hash", r.task_hash);
  run_row_fields(v, r);
}

std::vector<BenchClass> bench_classes(const std::vector<BenchRow>& rows) {
  std::map<std::string, BenchClass> classes;
  std::map<std::string, std::vector<double>> ratios;
  for (const BenchRow& r : rows) {
    const std::string name = r.workload.empty() ? "unknown" : r.workload;
    BenchClass& c = classes[name];
    c.workload = name;
    ++c.tasks;
    if (r.status != RowStatus::correct) continue;
    ++c.correct;
    if (auto ratio = r.floor_ratio()) ratios[name].push_back(*ratio);
  }
  std::vector<BenchClass> out;
  for (auto& [name, c] : classes) {
    c.floor_ratio = geometric_mean(ratios[name]);
    out.push_back(c);
  }
  return out;
}

std::string bench_header() {
  return fmt::format("{:<5} {:<44} {:<12} {:<11} {:>10} {:>10} {:>10} {:>8} {:>5} {:>8}  {}\n",
                     "level", "task", "class", "status", "first", "best", "floor", "vs floor",
                     "evals", "seconds", "reason");
}

std::string bench_line(const BenchRow& r) {
  return fmt::format(
      "{:<5} {:<44} {:<12} {:<11} {:>10} {:>10} {:>10} {:>8} {:>5} {:>8.1f}  {}\n", r.task.level,
      one_line(r.task.name, 44).substr(0, 44), one_line(r.workload, 12).substr(0, 12),
      to_string(r.status), time_text(r.first_ns), time_text(r.best_ns), time_text(r.floor_ns),
      ratio_text(r.floor_ratio()), r.evaluations, r.seconds, one_line(r.reason, 160));
}

std::string bench_table(const std::vector<BenchRow>& rows) {
  std::string out = bench_header();
  bool modelled = false;
  for (const BenchRow& r : rows) {
    out += bench_line(r);
    modelled = modelled || r.modelled();
  }
  out += fmt::format("\n{:<24} {:>6} {:>8} {:>22}\n", "class", "tasks", "correct",
                     "time / floor (geomean)");
  for (const BenchClass& c : bench_classes(rows))
    out += fmt::format("{:<24} {:>6} {:>8} {:>22}\n", one_line(c.workload, 24), c.tasks, c.correct,
                       ratio_text(c.floor_ratio));
  std::vector<std::string> parts;
  auto counts = counts_of(rows);
  for (RowStatus status : kRowStatuses)
    if (counts[status] > 0)
      parts.push_back(fmt::format("{} {}", counts[status], to_string(status)));
  out += summary_text(rows) + accuracy_summary_text(rows) + rewrite_summary_text(rows);
  out += fmt::format("\n{} tasks: {}\n", rows.size(), join(parts, ", "));
  if (modelled)
    out += "A simulator modelled the times; nothing was measured and no baseline was timed.\n";
  return out;
}

std::string bench_csv(const std::vector<BenchRow>& rows) {
  const auto kinds = baseline_kinds(rows);
  std::string out =
      "level,number,name,class,status,first_ns,best_ns,time_origin,floor_ns,floor_ratio,"
      "evaluations,seconds,run,reason,rewrites";
  for (const std::string& kind : kinds)
    out += "," + csv_text(kind + "_ns") + "," + csv_text("vs_" + kind) + "," +
           csv_text(kind + "_accuracy") + "," + csv_text(kind + "_error_share");
  out += kinds.empty() ? "\n" : ",best_baseline,vs_best,diagnosis\n";
  for (const BenchRow& r : rows) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", r.task.level, r.task.number,
                       csv_text(r.task.name), csv_text(r.workload), to_string(r.status),
                       csv_number(r.first_ns), csv_number(r.best_ns), r.time_origin,
                       csv_number(r.floor_ns), csv_number(r.floor_ratio()), r.evaluations,
                       r.seconds, r.run, csv_text(r.reason), csv_text(applied_rewrites(r)));
    out += kinds.empty() ? "\n" : baselines_csv(r, kinds) + "\n";
  }
  return out;
}

Json bench_settings_json(const BenchSettings& s) {
  Json out{{"device", s.optimize.evaluator.device.text()},
           {"model", s.optimize.model},
           {"strategy", to_string(s.optimize.strategy)},
           {"evaluations", s.optimize.search.budget.evaluations},
           {"per_task_minutes", s.per_task_minutes}};
  if (s.optimize.rewrites != OptimizeSettings().rewrites) out["rewrites"] = s.optimize.rewrites;
  if (!s.optimize.asked.empty()) out["asked"] = to_json(s.optimize.asked);
  return out;
}

Json bench_json(const BenchSettings& settings, const BenchReport& report) {
  Json classes = Json::array(), counts = Json::object();
  for (const BenchClass& c : bench_classes(report.rows))
    classes.push_back({{"class", c.workload},
                       {"tasks", c.tasks},
                       {"correct", c.correct},
                       {"floor_ratio_geomean", optional_json(c.floor_ratio)}});
  auto counted = counts_of(report.rows);
  for (RowStatus status : kRowStatuses) counts[to_string(status)] = counted[status];
  Json summary = summary_json(report.rows);
  summary["accuracy"] = accuracy_summary_json(report.rows);
  if (Json rewrites = rewrite_summary_json(report.rows); !rewrites.is_null())
    summary["rewrites"] = std::move(rewrites);
  return {{"schema", kBenchSchema},
          {"settings", bench_settings_json(settings)},
          {"out", settings.out.string()},
          {"jobs", settings.jobs},
          {"tasks", write_json(report.rows)},
          {"classes", std::move(classes)},
          {"summary", std::move(summary)},
          {"counts", std::move(counts)},
          {"interrupted", report.interrupted},
          {"exit_code", report.exit_code()}};
}

Result<std::vector<BenchRow>> bench_rows_from(const Json& document) {
  ObjectReader r(document, "bench.json#");
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != kBenchSchema)
    return user_error("the bench was written by another version (" + sanitize(schema, 60) + ")",
                      "bench.json", "start the bench again without --resume");
  CG_TRY(Json tasks, r.array("tasks"));
  return read_json<std::vector<BenchRow>>(tasks, r.place("tasks"));
}

}  // namespace cutegen::engine
