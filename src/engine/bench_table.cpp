// SPDX-License-Identifier: Apache-2.0
#include "engine/bench_table.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "base/units.h"

namespace cutegen {
namespace {

constexpr const char* kStatuses[] = {"correct",  "no_recipe",   "failed",
                                     "rejected", "unsupported", "aborted",
                                     "error",    "interrupted", "pending"};
constexpr const char* kSchema = "cutegen.bench.v1";

std::string one_line(const std::string& text, size_t limit) {
  std::string out = sanitize(text, limit);
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

std::string time_text(const std::optional<double>& ns) {
  return ns ? human_ns(*ns) : "-";
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}x", *ratio) : "-";
}

std::string quoted(const std::string& text) {
  return "\"" + replace_all(one_line(text, 1000), "\"", "\"\"") + "\"";
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const BenchRow& r) {
  return {{"level", r.task.level},
          {"number", r.task.number},
          {"name", r.task.name},
          {"file", r.task.file.string()},
          {"task_hash", r.task_hash},
          {"class", r.workload},
          {"status", r.status},
          {"reason", r.reason},
          {"first_ns", optional_json(r.first_ns)},
          {"best_ns", optional_json(r.best_ns)},
          {"time_origin", r.time_origin},
          {"floor_ns", optional_json(r.floor_ns)},
          {"floor_ratio", optional_json(r.floor_ratio())},
          {"evaluations", r.evaluations},
          {"seconds", r.seconds},
          {"run", r.run},
          {"error_code", r.error_code}};
}

Result<std::optional<double>> optional_number(ObjectReader& r, const std::string& key) {
  CG_TRY(Json value, r.any(key));
  if (value.is_null()) return std::optional<double>();
  CG_TRY(double number, r.number(key));
  return std::optional<double>(number);
}

Result<BenchRow> row_from(const Json& json) {
  ObjectReader r(json, "bench.json#/tasks");
  BenchRow row;
  CG_TRY(int64_t level, r.integer("level"));
  CG_TRY(int64_t number, r.integer("number"));
  CG_TRY(row.task.name, r.string("name"));
  CG_TRY(std::string file, r.string("file"));
  row.task.level = int(level), row.task.number = int(number), row.task.file = file;
  CG_TRY(row.task_hash, r.string("task_hash"));
  CG_TRY(row.workload, r.string("class"));
  CG_TRY(row.status, r.string("status"));
  CG_TRY(row.reason, r.string("reason"));
  CG_TRY(row.first_ns, optional_number(r, "first_ns"));
  CG_TRY(row.best_ns, optional_number(r, "best_ns"));
  CG_TRY(row.time_origin, r.string("time_origin"));
  CG_TRY(row.floor_ns, optional_number(r, "floor_ns"));
  CG_TRY(row.evaluations, r.integer("evaluations"));
  CG_TRY(row.seconds, r.number("seconds"));
  CG_TRY(row.run, r.string("run"));
  CG_TRY(int64_t code, r.integer("error_code"));
  row.error_code = int(code);
  return row;
}

std::map<std::string, int64_t> counts_of(const std::vector<BenchRow>& rows) {
  std::map<std::string, int64_t> out;
  for (const BenchRow& r : rows) ++out[r.status];
  return out;
}

}  // namespace

std::vector<BenchClass> bench_classes(const std::vector<BenchRow>& rows) {
  std::map<std::string, BenchClass> classes;
  std::map<std::string, std::vector<double>> ratios;
  for (const BenchRow& r : rows) {
    const std::string name = r.workload.empty() ? "unknown" : r.workload;
    BenchClass& c = classes[name];
    c.workload = name;
    ++c.tasks;
    if (r.status != "correct") continue;
    ++c.correct;
    if (auto ratio = r.floor_ratio()) ratios[name].push_back(*ratio);
  }
  std::vector<BenchClass> out;
  for (auto& [name, c] : classes) {
    double logs = 0;
    for (double ratio : ratios[name]) logs += std::log(ratio);
    if (!ratios[name].empty()) c.floor_ratio = std::exp(logs / double(ratios[name].size()));
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
  return fmt::format("{:<5} {:<44} {:<12} {:<11} {:>10} {:>10} {:>10} {:>8} {:>5} {:>8.1f}  {}\n",
                     r.task.level, one_line(r.task.name, 44).substr(0, 44),
                     one_line(r.workload, 12).substr(0, 12), r.status, time_text(r.first_ns),
                     time_text(r.best_ns), time_text(r.floor_ns), ratio_text(r.floor_ratio()),
                     r.evaluations, r.seconds, one_line(r.reason, 160));
}

std::string bench_table(const std::vector<BenchRow>& rows) {
  std::string out = bench_header();
  bool modelled = false;
  for (const BenchRow& r : rows) {
    out += bench_line(r);
    modelled = modelled || r.time_origin == "modelled";
  }
  out += fmt::format("\n{:<24} {:>6} {:>8} {:>22}\n", "class", "tasks", "correct",
                     "time / floor (geomean)");
  for (const BenchClass& c : bench_classes(rows))
    out += fmt::format("{:<24} {:>6} {:>8} {:>22}\n", one_line(c.workload, 24), c.tasks, c.correct,
                       ratio_text(c.floor_ratio));
  auto counts = counts_of(rows);
  out += fmt::format("\n{} tasks:", rows.size());
  const char* separator = " ";
  for (const char* status : kStatuses)
    if (counts[status] > 0) {
      out += fmt::format("{}{} {}", separator, counts[status], status);
      separator = ", ";
    }
  out += "\n";
  if (modelled) out += "Times are modelled by a simulator, not measured; no baseline was timed.\n";
  return out;
}

std::string bench_csv(const std::vector<BenchRow>& rows) {
  std::string out =
      "level,number,name,class,status,first_ns,best_ns,time_origin,floor_ns,floor_ratio,"
      "evaluations,seconds,run,reason\n";
  for (const BenchRow& r : rows)
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r.task.level, r.task.number,
                       quoted(r.task.name), quoted(r.workload), r.status, number(r.first_ns),
                       number(r.best_ns), r.time_origin, number(r.floor_ns),
                       number(r.floor_ratio()), r.evaluations, r.seconds, r.run, quoted(r.reason));
  return out;
}

Json bench_settings_json(const BenchSettings& s) {
  return {{"device", s.optimize.evaluator.device},
          {"model", s.optimize.model},
          {"strategy", s.optimize.strategy},
          {"evaluations", s.optimize.search.budget.evaluations},
          {"per_task_minutes", s.per_task_minutes}};
}

Json bench_json(const BenchSettings& settings, const BenchReport& report) {
  Json tasks = Json::array(), classes = Json::array(), counts = Json::object();
  for (const BenchRow& r : report.rows) tasks.push_back(row_json(r));
  for (const BenchClass& c : bench_classes(report.rows))
    classes.push_back({{"class", c.workload},
                       {"tasks", c.tasks},
                       {"correct", c.correct},
                       {"floor_ratio_geomean", optional_json(c.floor_ratio)}});
  auto counted = counts_of(report.rows);
  for (const char* status : kStatuses) counts[status] = counted[status];
  return {{"schema", kSchema},
          {"settings", bench_settings_json(settings)},
          {"out", settings.out.string()},
          {"jobs", settings.jobs},
          {"tasks", std::move(tasks)},
          {"classes", std::move(classes)},
          {"counts", std::move(counts)},
          {"interrupted", report.interrupted},
          {"exit_code", report.exit_code()}};
}

Result<std::vector<BenchRow>> bench_rows_from(const Json& document) {
  ObjectReader r(document, "bench.json#");
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != kSchema)
    return user_error("the bench was written by another version (" + sanitize(schema, 60) + ")",
                      "bench.json", "start it again without --resume");
  CG_TRY(Json tasks, r.array("tasks"));
  std::vector<BenchRow> out;
  for (const Json& task : tasks) {
    CG_TRY(BenchRow row, row_from(task));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace cutegen
